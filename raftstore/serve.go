package raftstore

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// maxServed bounds the requests of one connection that are worked on; beyond it the connection is not
// read, and the other member waits.
const maxServed = 1024

// server answers the requests that other members forward. It answers for this member alone: if that
// does not lead, the answer is ErrNotLeader, and the asker looks again for who does.
type server struct {
	raft      *raft.Raft
	proposer  *proposer
	readIndex *readIndex
	lessor    *lessor
	member    *Member
	timeout   time.Duration
}

// serve answers the requests of one connection until it breaks.
func (s *server) serve(conn net.Conn) {
	ctx, cancel := context.WithCancel(WithOrigin(context.Background(), memberOrigin)) // proposals bring their own
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()

	caller := identify(conn)
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	var mu sync.Mutex // guards out
	slots := make(chan struct{}, maxServed)
	for {
		f, err := readFrame(in)
		if err != nil {
			return
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			answer := s.answer(ctx, caller, f)
			mu.Lock()
			defer mu.Unlock()
			if writeFrame(out, answer) != nil {
				_ = conn.Close() // the asker counts its requests as lost
			}
		})
	}
}

func (s *server) answer(ctx context.Context, caller *identity, f frame) frame {
	timeout := s.timeout
	if f.kind == frameDefragment {
		timeout = defragmentTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	kind, body, err := s.do(ctx, caller, f)
	if err != nil {
		kind, body = frameError, encodeError(err)
	}
	return frame{number: f.number, kind: kind, body: body}
}

func (s *server) do(ctx context.Context, caller *identity, f frame) (kind byte, body []byte, err error) {
	var e encoder
	switch f.kind {
	case frameProposal:
		if len(f.body) > MaxProposalBytes {
			return 0, nil, ErrTooLarge
		}
		_, c, err := decodeProposal(f.body)
		if err != nil {
			return 0, nil, err // nothing malformed may get into the log
		}
		if err := s.member.checkSpace(c); err != nil {
			return 0, nil, err
		}
		res, err := s.proposer.propose(ctx, f.body)
		e.result(&res.Txn)
		return frameResult, e.b, err
	case frameReadIndex:
		index, err := s.readIndex.get(ctx)
		e.uvarint(index)
		return frameIndex, e.b, err
	case frameTerm:
		e.uvarint(s.raft.CurrentTerm())
		return frameTermIs, e.b, nil
	case frameRenew, frameTTL:
		body, err := s.lease(ctx, f)
		return frameLease, body, err
	case frameChange:
		c, err := decodeChange(f.body)
		if err == nil {
			err = s.member.makeChange(ctx, c)
		}
		return frameDone, nil, err
	case frameJoin:
		return frameDone, nil, s.letJoin(ctx, caller, f.body)
	case frameMembership:
		return frameDone, nil, s.membership(ctx, f.body)
	case frameHash:
		body, err := s.hash(ctx, f.body)
		return frameHashIs, body, err
	case frameKnown:
		body, err := s.known(f.body)
		return frameKnownIs, body, err
	case frameDefragment:
		return frameDone, nil, s.member.Defragment(ctx)
	case frameLog:
		body, err := s.logPage(ctx, f.body)
		return frameLogIs, body, err
	case frameStatus:
		body, err := s.status()
		return frameStatusIs, body, err
	default:
		return 0, nil, ErrFormat
	}
}
