package audit

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// memory is a sink that remembers batches. If it has a gate it waits for it to open.
type memory struct {
	gate    chan struct{}
	fail    error
	batches [][][]byte
	closed  bool
}

func (m *memory) write(events [][]byte) error {
	if m.gate != nil {
		<-m.gate
	}
	if m.fail != nil {
		return m.fail
	}
	m.batches = append(m.batches, events)
	return nil
}

func (m *memory) close() error { m.closed = true; return nil }

func (m *memory) sizes() (sizes []int) {
	for _, b := range m.batches {
		sizes = append(sizes, len(b))
	}
	return sizes
}

func event(i int) [][]byte { return [][]byte{fmt.Append(nil, i)} }

func TestBufferBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &memory{}
		b := newBuffer(out, BatchConfig{MaxSize: 10, MaxWait: time.Minute}, nil)
		var events [][]byte
		for i := range 25 {
			events = append(events, event(i)...)
		}
		require.NoError(t, b.write(events)) // at once: the writer takes ten as soon as there are ten
		synctest.Wait()
		require.Equal(t, []int{10, 10, 5}, out.sizes(), "once there is enough for one, all goes")
		require.NoError(t, b.write(event(25)))
		time.Sleep(59 * time.Second)
		synctest.Wait()
		require.Len(t, out.batches, 3)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, []int{10, 10, 5, 1}, out.sizes())
		require.NoError(t, b.write(event(26)))
		require.NoError(t, b.close())
		require.Equal(t, []int{10, 10, 5, 1, 1}, out.sizes(), "close leaves nothing behind")
		require.True(t, out.closed)
		require.ErrorIs(t, b.write(event(27)), ErrFull)
	})
}

func TestBufferIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &memory{gate: make(chan struct{})}
		b := newBuffer(out, BatchConfig{BufferSize: 3, MaxSize: 1}, nil)
		require.NoError(t, b.write(event(0)))
		time.Sleep(time.Second) // the writer has it
		for i := range 3 {
			require.NoError(t, b.write(event(i+1)))
		}
		require.ErrorIs(t, b.write(event(4)), ErrFull)
		close(out.gate)
		time.Sleep(time.Second)
		require.NoError(t, b.write(event(5)))
		require.NoError(t, b.close())
		require.Len(t, out.batches, 5)
	})
	b := newBuffer(&memory{}, BatchConfig{MaxWait: time.Hour}, nil)
	require.ErrorIs(t, b.write([][]byte{make([]byte, maxBufferBytes+1)}), ErrFull)
	require.NoError(t, b.close())
}

func TestBufferTellsOfLosses(t *testing.T) {
	var lost int
	broken := errors.New("broken")
	out := &memory{fail: broken}
	b := newBuffer(out, BatchConfig{MaxSize: 2, MaxWait: time.Hour}, func(n int, err error) {
		require.ErrorIs(t, err, broken)
		lost += n
	})
	for i := range 5 {
		require.NoError(t, b.write(event(i)))
	}
	require.NoError(t, b.close())
	require.Equal(t, 5, lost)
}
