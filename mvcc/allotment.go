package mvcc

// allotment is where the commands of one raft entry get their records and results from. An entry often has a hundred
// commands that write one key each: they share a few pieces of memory, in place of several for each. Entries share none,
// since a piece stays for as long as anybody has a part of it.
type allotment struct {
	left    int // commands that are still to be done, this one included
	records []record
	results []OpResult
}

// record returns an empty record.
func (a *allotment) record() *record {
	if len(a.records) == 0 {
		a.records = make([]record, max(a.left, 1))
	}
	r := &a.records[0]
	a.records = a.records[1:]
	return r
}

// opResults returns n empty results.
func (a *allotment) opResults(n int) []OpResult {
	if len(a.results) < n {
		a.results = make([]OpResult, max(a.left, n))
	}
	r := a.results[:n:n]
	a.results = a.results[n:]
	return r
}
