package storage

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/watch"
)

// List returns the selected objects in key order, or a page of them.
func (s *Store) List(ctx context.Context, options ListOptions) (*List, error) {
	filter, err := s.filter(options.Selection)
	if err != nil {
		return nil, err
	}
	plan, err := planList(options)
	if err != nil {
		return nil, err
	}
	start := filter.Start + plan.start
	snapshot, err := s.snapshot(ctx, plan, start, filter.End)
	if err != nil {
		return nil, s.listError(ctx, err, plan)
	}
	if err := s.decodeSelected(snapshot, filter, start, options.Limit); err != nil {
		return nil, err
	}
	page := pager{filter: filter, limit: options.Limit}
	page.filter.Start = start
	return page.read(snapshot, filter.Start)
}

// decodeSelected decodes what a list will read. With a selector nobody knows how much that is before it is decoded.
func (s *Store) decodeSelected(snapshot *watch.Snapshot, filter watch.Filter, start string, limit int64) error {
	if filter.Match != nil {
		limit = 0
	}
	return s.codec.decodeTogether(snapshot, start, filter.End, limit)
}

// listPlan is what resourceVersion, resourceVersionMatch, limit and continue mean together: the table of
// https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
type listPlan struct {
	mode      listMode
	revision  int64
	start     string // where the page starts, relative to the list's prefix
	continued bool
}

type listMode uint8

const (
	mostRecent   listMode = iota // consistent with every write before the request
	anyRevision                  // whatever is at hand
	notOlderThan                 // at least revision
	exactly                      // the state at revision
)

func planList(o ListOptions) (listPlan, error) {
	revision, err := parseRevision(o.ResourceVersion)
	if err != nil {
		return listPlan{}, err
	}
	switch {
	case o.Continue != "":
		return planContinue(o, revision)
	case o.ResourceVersionMatch == metav1.ResourceVersionMatchExact:
		if revision == 0 {
			return listPlan{}, o.badMatch("needs a resourceVersion other than 0")
		}
		return listPlan{mode: exactly, revision: revision}, nil
	case o.ResourceVersionMatch != "" && o.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan:
		return listPlan{}, o.badMatch("must be Exact or NotOlderThan")
	case o.ResourceVersion == "" && o.ResourceVersionMatch != "":
		return listPlan{}, o.badMatch("needs a resourceVersion")
	case o.ResourceVersion == "":
		return listPlan{mode: mostRecent}, nil
	case revision == 0:
		return listPlan{mode: anyRevision}, nil
	case o.Limit > 0 && o.ResourceVersionMatch == "":
		return listPlan{mode: exactly, revision: revision}, nil // older than resourceVersionMatch
	}
	return listPlan{mode: notOlderThan, revision: revision}, nil
}

func (o ListOptions) badMatch(reason string) error {
	return &OptionError{Option: "resourceVersionMatch", Value: string(o.ResourceVersionMatch), Reason: reason}
}

func planContinue(o ListOptions, revision int64) (listPlan, error) {
	if o.ResourceVersionMatch != "" {
		return listPlan{}, o.badMatch("is forbidden with continue")
	}
	if revision != 0 { // clients send 0 with every page; it means nothing then
		return listPlan{}, &OptionError{Reason: "specifying resource version is not allowed when using continue"}
	}
	token, err := parseContinue(o.Continue)
	if err != nil {
		return listPlan{}, err
	}
	plan := listPlan{mode: exactly, revision: token.Revision, start: token.Start, continued: true}
	if token.Revision == newestRevision {
		plan.mode, plan.revision = mostRecent, 0
	}
	return plan, nil
}

// snapshot returns the state that the plan asks for, at least of the keys in [start, end).
func (s *Store) snapshot(ctx context.Context, plan listPlan, start, end string) (*watch.Snapshot, error) {
	if plan.mode == mostRecent {
		return s.newestSnapshot(ctx, start, end)
	}
	if err := s.await(ctx, plan.revision); err != nil {
		return nil, err
	}
	if plan.mode == exactly {
		return s.cache.SnapshotAt(ctx, plan.revision, start, end)
	}
	return s.cache.Snapshot(ctx)
}

// newestSnapshot is consistent: see readNewest.
func (s *Store) newestSnapshot(ctx context.Context, start, end string) (*watch.Snapshot, error) {
	revision, err := s.kv.Revision(ctx)
	if err != nil {
		return nil, err
	}
	err = s.await(ctx, revision)
	if s.cacheIsBehind(ctx, err) {
		return s.cache.SnapshotAt(ctx, revision, start, end)
	}
	if err != nil {
		return nil, err
	}
	return s.cache.Snapshot(ctx)
}

// listError adds to an expired revision what the client can go on with.
func (s *Store) listError(ctx context.Context, err error, plan listPlan) error {
	var gone *watch.ExpiredError
	if !errors.As(err, &gone) {
		err = s.historyError(ctx, err, plan.revision)
		var future *FutureRevisionError
		if errors.As(err, &future) {
			return future
		}
		return fmt.Errorf("list %s: %w", s.row.Resource, err)
	}
	expired := &ExpiredListError{ExpiredError: *gone}
	expired.Requested = plan.revision
	if plan.continued {
		expired.Continue = continueToken{Revision: newestRevision, Start: plan.start}.String()
	}
	return expired
}

// pager reads a page of a snapshot.
type pager struct {
	filter watch.Filter
	limit  int64 // 0 or less for none

	list      List
	more      bool
	remaining int64
	failure   error
}

// read returns the page; the continue token is relative to prefix.
func (p *pager) read(snapshot *watch.Snapshot, prefix string) (*List, error) {
	p.list.Revision = snapshot.Revision
	snapshot.Ascend(p.filter.Start, p.filter.End, p.visit)
	if p.failure != nil {
		return nil, p.failure
	}
	if p.more {
		last := p.list.Items[len(p.list.Items)-1].Key
		p.list.Continue = continueToken{Revision: snapshot.Revision, Start: last[len(prefix):] + "\x00"}.String()
		if p.filter.Match == nil { // with a selector it would take looking at every object that is left
			p.list.RemainingItemCount = &p.remaining
		}
	}
	return &p.list, nil
}

// visit takes objects until the page is full. Then it looks for one more, so that the last page is
// known to be the last, and counts the rest if that needs no decoding.
func (p *pager) visit(o *watch.Object) bool {
	full := p.limit > 0 && int64(len(p.list.Items)) == p.limit
	if full && p.filter.Match == nil {
		p.more = true
		p.remaining++
		return true
	}
	ok, err := p.filter.Matches(o)
	switch {
	case err != nil:
		p.failure = err
		return false
	case ok && full:
		p.more = true
		return false
	case ok:
		p.list.Items = append(p.list.Items, o)
	}
	return true
}
