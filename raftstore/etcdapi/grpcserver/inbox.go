package grpcserver

import (
	"context"
	"sync"

	"google.golang.org/grpc/status"
)

// inbox has the messages of a stream that the call has not taken. The stream's window bounds it (stream.credit).
type inbox struct {
	news chan struct{} // room for one

	mu       sync.Mutex // guards everything below
	messages [][]byte
	err      error // what comes after the last message
}

func newInbox() *inbox { return &inbox{news: make(chan struct{}, 1)} }

func (b *inbox) put(message []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages = append(b.messages, message)
	b.tell()
}

func (b *inbox) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.tell()
}

func (b *inbox) tell() {
	select {
	case b.news <- struct{}{}:
	default:
	}
}

func (b *inbox) take(ctx context.Context) ([]byte, error) {
	for {
		if message, err := b.next(); message != nil || err != nil {
			return message, err
		}
		select {
		case <-b.news:
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

// next returns nothing if there is nothing yet.
func (b *inbox) next() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.messages) == 0 {
		return nil, b.err
	}
	message := b.messages[0]
	b.messages = b.messages[1:]
	return message, nil
}
