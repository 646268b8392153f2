package mvcc

// Range reads keys, in key order, as of a revision. It fails with ErrFutureRevision or ErrCompacted
// if the revision is not (yet, any more) there; a read at revision 0 never does (KV-03).
func (s *Store) Range(req RangeRequest) (RangeResult, error) {
	if err := req.validate(); err != nil {
		return RangeResult{}, err
	}
	found, v, err := s.find(req)
	if err != nil {
		return RangeResult{}, err
	}
	defer v.close()
	return found.result(v)
}

// find does the part of a read that needs the lock: it asks the index which versions to read, and
// takes the view to read them from. The lock is not held while values are read.
func (s *Store) find(req RangeRequest) (selection, *view, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return selection{}, nil, ErrClosed
	}
	if err := s.checkRevision(req.Revision); err != nil {
		return selection{}, nil, err
	}
	found := s.index.find(req, s.meta.revision)
	v, err := s.newView(found.oldest() >= s.tail.start)
	return found, v, err
}

// checkRevision says whether a read at revision can be answered; 0 always can. The caller holds mu.
func (s *Store) checkRevision(revision int64) error {
	switch {
	case revision <= 0:
		return nil
	case revision > s.meta.revision:
		return ErrFutureRevision
	case revision < s.meta.compacted:
		return ErrCompacted
	}
	return nil
}

// selection is the answer to a read before the values are read.
type selection struct {
	req      RangeRequest
	revision int64 // the newest when the read was served
	versions []version
	count    int64
	more     bool
}

// find selects the versions that req asks for; newest is the store's newest revision.
func (x *index) find(req RangeRequest, newest int64) selection {
	at := req.Revision
	if at <= 0 {
		at = newest
	}
	found := selection{req: req, revision: newest}
	early := req.SortBy == SortByKey && !req.Descending // the first keys found are the ones to return
	x.scan(keyRange{req.Key, req.End}, at, func(_ *keyIndex, v version) bool {
		found.count++
		switch {
		case req.CountOnly || !req.within(v):
		case early && req.Limit > 0 && int64(len(found.versions)) == req.Limit:
			found.more = true
		default:
			found.versions = append(found.versions, v)
		}
		return true
	})
	if !early && req.SortBy != SortByValue {
		req.sort(found.versions)
		found.versions, found.more = cut(found.versions, req.Limit)
	}
	return found
}

// oldest is the lowest main revision selected; one above the store's newest if nothing is.
func (f *selection) oldest() int64 {
	oldest := f.revision + 1
	for _, v := range f.versions {
		oldest = min(oldest, v.rev.Main)
	}
	return oldest
}

func (f *selection) result(v *view) (RangeResult, error) {
	res := RangeResult{Revision: f.revision, Count: f.count, More: f.more}
	if f.req.CountOnly {
		return res, nil
	}
	byValue := f.req.SortBy == SortByValue
	res.KVs = make([]KeyValue, len(f.versions))
	for i, selected := range f.versions {
		kv, err := v.keyValue(selected.rev, f.req.KeysOnly && !byValue)
		if err != nil {
			return RangeResult{}, err
		}
		res.KVs[i] = kv
	}
	if byValue {
		f.req.sortValues(res.KVs)
		res.KVs, res.More = cut(res.KVs, f.req.Limit)
	}
	return res, nil
}
