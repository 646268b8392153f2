package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kontiki/mvcc"
	"kontiki/raftstore"
)

// Changes of membership. One is made at a time, and only while all members are up and vote (whole): two disks lost at once
// may be a majority's, and so may one, if a demotion of unknown outcome comes true later.

// changeMembers begins a change of one member, if none is under way.
func (s *simulation) changeMembers(f fault) {
	name := f.who[0]
	if !s.changing.TryLock() {
		return
	}
	if !s.turns[name].TryLock() {
		s.changing.Unlock()
		return
	}
	s.healing.Go(func() {
		defer s.changing.Unlock()
		defer s.turns[name].Unlock()
		if !s.whole() {
			s.count("changes put off")
			return
		}
		switch f.kind {
		case "lose disk":
			s.loseDisk(f, name, false)
		case "remove":
			s.loseDisk(f, name, true)
		case "demote":
			s.demote(f, name)
		}
	})
}

// loseDisk replaces a member by one with a new id and an empty disk at the same address; with remove,
// the old one is removed first.
func (s *simulation) loseDisk(f fault, name string, remove bool) {
	old := s.cluster.id(name)
	if remove {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if p := s.cluster.any(s.dice); p != nil {
			_ = p.member.RemoveMember(ctx, old) // if it fails, it may happen yet; or it is as if the disk were lost
		}
	}
	s.cluster.stop(name)
	s.cluster.replace(name)
	time.Sleep(f.lasts)
	s.cluster.start(name)
	s.await(fmt.Sprintf("%s replaces %s", s.cluster.id(name), old), func(ctx context.Context, p *process) bool {
		ids := voters(ctx, p)
		return slices.Contains(ids, s.cluster.id(name)) && !slices.Contains(ids, old)
	})
}

// whole says whether all members are up and each knows all of them as voters. What a member knows is the newest configuration
// in its log, committed or not; so no change is under way in anybody's log.
func (s *simulation) whole() bool {
	up := s.cluster.processes()
	if len(up) != len(s.cluster.names) {
		return false
	}
	for _, p := range up {
		votes := map[string]bool{}
		for _, m := range p.member.LocalMembers() {
			votes[m.ID] = !m.Learner
		}
		for _, name := range s.cluster.names {
			if len(votes) != len(s.cluster.names) || !votes[s.cluster.id(name)] {
				return false
			}
		}
	}
	return true
}

// demote takes a member's vote and gives it back.
func (s *simulation) demote(f fault, name string) {
	id := s.cluster.id(name)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if p := s.cluster.any(s.dice); p != nil {
		_ = p.member.DemoteMember(ctx, id) // whether or not, or later, it shall have it back
	}
	time.Sleep(f.lasts)
	s.await(id+" gets its vote back", func(ctx context.Context, p *process) bool {
		if s.whole() {
			return true
		}
		_ = p.member.PromoteMember(ctx, id) // refused until it has caught up
		return false
	})
}

// await asks members, one after the other, until one says that something is so.
func (s *simulation) await(what string, is func(context.Context, *process) bool) {
	ctx, cancel := context.WithTimeout(context.Background(), s.during+patience)
	defer cancel()
	for ctx.Err() == nil {
		if p := s.cluster.any(s.dice); p != nil {
			attempt, cancel := context.WithTimeout(ctx, 3*time.Second)
			done := is(attempt, p)
			cancel()
			if done {
				return
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	s.lessons.add("never happened: %s", what)
}

func voters(ctx context.Context, p *process) (ids []string) {
	members, _ := p.member.Members(ctx)
	for _, m := range members {
		if !m.Learner {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// moveLeader hands leadership over.
func (s *simulation) moveLeader(f fault) {
	s.healing.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if p := s.cluster.any(s.dice); p != nil {
			_ = p.member.MoveLeader(ctx, s.cluster.id(f.who[0])) // may be refused
		}
	})
}

// defragment has a member rewrite its file.
func (s *simulation) defragment(f fault) {
	p := s.cluster.process(f.who[0])
	if p == nil {
		return
	}
	s.healing.Go(func() {
		err := p.member.Defragment(p.alive)
		if err != nil && p.isAlive() && !errors.Is(err, mvcc.ErrClosed) && !errors.Is(err, raftstore.ErrClosed) {
			s.lessons.add("%v does not defragment: %v", p, err)
		}
	})
}
