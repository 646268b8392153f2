package faults

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	writers  = 20
	counters = 4
	// counterPrefix begins the keys of the counters.
	counterPrefix = "counter/"
	// writerPace is how often a writer writes at most, so that a long run's history fits in memory.
	writerPace = 20 * time.Millisecond
	// writeTimeout is how long it waits for an answer.
	writeTimeout = 3 * time.Second
)

// writer writes through one member only, as an API server does. In turn it puts a key of its own and counts up a
// counter of all, with a compare-and-swap.
type writer struct {
	number  int
	member  int
	client  *clientv3.Client
	history *history
}

// run writes until the context ends; the last write ends before it returns.
func (w *writer) run(ctx context.Context) {
	pace := time.NewTicker(writerPace)
	defer pace.Stop()
	for n := 0; ; n++ {
		select {
		case <-pace.C:
		case <-ctx.Done():
			return
		}
		w.step(n)
	}
}

func (w *writer) step(n int) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	tag := fmt.Sprintf("%d.%d", w.number, n)
	if n%2 == 0 {
		w.put(ctx, "put/"+tag, tag)
	} else {
		w.count(ctx, counterPrefix+strconv.Itoa(n/2%counters), tag)
	}
}

func (w *writer) put(ctx context.Context, key, value string) {
	began, record := time.Now(), write{key: key, value: value, seen: w.history.soFar()}
	if answer, err := w.client.Put(ctx, key, value); err == nil {
		record.outcome, record.revision = acknowledged, answer.Header.Revision
	}
	w.history.wrote(w.member, began, record)
}

// count reads a counter and writes it one higher, if nobody else did in between.
func (w *writer) count(ctx context.Context, key, tag string) {
	r := read{key: key, seen: w.history.soFar()}
	got, err := w.client.Get(ctx, key)
	if err != nil {
		w.history.hasRead(nil)
		return
	}
	r.revision = got.Header.Revision
	n := 0
	if len(got.Kvs) > 0 {
		r.modified = got.Kvs[0].ModRevision
		n = counted(string(got.Kvs[0].Value))
	}
	w.history.hasRead(&r)

	began, record := time.Now(), write{key: key, value: fmt.Sprintf("%d %s", n+1, tag), seen: w.history.soFar()}
	answer, err := w.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", r.modified)).
		Then(clientv3.OpPut(key, record.value)).Commit()
	switch {
	case err != nil:
	case answer.Succeeded:
		record.outcome, record.revision = acknowledged, answer.Header.Revision
	default:
		record.outcome = refused
	}
	w.history.wrote(w.member, began, record)
}

// counted is the number in a counter's value; 0 if there is none.
func counted(value string) int {
	number, _, _ := strings.Cut(value, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return n
}
