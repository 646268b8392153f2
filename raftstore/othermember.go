package raftstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"
)

// What an operator can ask one member about another: show its raft log, defragment its file. The other is asked over
// the connection that requests to the leader use.

// defragmentTimeout bounds how long another member's defragmentation is waited for; it copies the whole file.
const defragmentTimeout = 10 * time.Minute

// logPageBytes is about how much of another member's log one answer carries.
const logPageBytes = 1 << 20

// errPageFull ends a page of the log.
var errPageFull = errors.New("raftstore: page is full")

// LogOf is Log of any member, named by its id, name, address or one of its client URLs; "" is this one.
func (m *Member) LogOf(ctx context.Context, member string, from uint64, f func(LogEntry) error) error {
	address, err := m.addressOf(member)
	if err != nil {
		return err
	}
	if address == "" {
		return m.Log(ctx, from, f)
	}
	for {
		next, err := m.forwarder.log(ctx, address, from, f)
		if err != nil || next == from {
			return err
		}
		from = next
	}
}

// DefragmentMember gives the free pages of a member's file back to its disk. Members are named as for LogOf.
func (m *Member) DefragmentMember(ctx context.Context, member string) error {
	address, err := m.addressOf(member)
	if err != nil {
		return err
	}
	if address == "" {
		return m.Defragment(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, defragmentTimeout)
	defer cancel()
	_, err = m.forwarder.call(ctx, address, frameDefragment, nil)
	return err
}

// addressOf finds a member, by any of its names. It is "" for this one.
func (m *Member) addressOf(member string) (string, error) {
	if member == "" {
		return "", nil
	}
	for _, i := range m.LocalMembers() {
		switch {
		case !i.goesBy(member):
		case i.ID == m.cfg.NodeID:
			return "", nil
		default:
			return i.Address, nil
		}
	}
	return "", fmt.Errorf("%w: %s", ErrMemberNotFound, member)
}

// goesBy says whether a member has a name, as an operator may know it: a client URL counts without its scheme, too.
func (i MemberInfo) goesBy(name string) bool {
	return name == i.ID || name == i.Name || name == i.Address || slices.ContainsFunc(i.ClientURLs, func(clientURL string) bool {
		u, err := url.Parse(clientURL)
		return name == clientURL || err == nil && name == u.Host
	})
}

// log asks the member at address for a page of its log, and returns where the next one begins: where this one does, if it
// was the last.
func (f *forwarder) log(ctx context.Context, address string, from uint64, each func(LogEntry) error) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, hashTimeout)
	defer cancel()
	var e encoder
	e.uvarint(from)
	body, err := f.call(ctx, address, frameLog, e.b)
	if err != nil {
		return 0, err
	}
	for in := json.NewDecoder(bytes.NewReader(body)); ; {
		var entry LogEntry
		if err := in.Decode(&entry); errors.Is(err, io.EOF) {
			return from, nil
		} else if err != nil {
			return 0, fmt.Errorf("%w: log: %w", ErrFormat, err)
		}
		if err := each(entry); err != nil {
			return 0, err
		}
		from = entry.Index + 1
	}
}

// logPage answers log.
func (s *server) logPage(ctx context.Context, body []byte) ([]byte, error) {
	d := decoder{b: body}
	from := d.uvarint()
	if err := d.end(); err != nil {
		return nil, err
	}
	var page bytes.Buffer
	err := s.member.Log(ctx, from, func(e LogEntry) error {
		if err := json.NewEncoder(&page).Encode(e); err != nil {
			return err
		}
		if page.Len() >= logPageBytes {
			return errPageFull
		}
		return nil
	})
	if errors.Is(err, errPageFull) {
		err = nil
	}
	return page.Bytes(), err
}
