package flowcontrol

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
)

// read is a request of a user without privileges: level global-default.
func read(user string) Request {
	return Request{User: user, Groups: []string{"system:authenticated"}, Verb: "get", Resource: "pods", Namespace: "default"}
}

// One client with hundreds of slow requests; the request of another one is served next, when a seat gets free.
func TestOneClientCannotStarveAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{Seats: 49}) // global-default has 4 of these, and borrows
		greedy := func(context.Context) {
			ticket, err := c.Enter(t.Context(), read("greedy"))
			if err == nil {
				time.Sleep(time.Second)
				ticket.Leave()
			}
		}
		for range 200 {
			go greedy(t.Context())
		}
		synctest.Wait()
		began := time.Now()
		ticket, err := c.Enter(t.Context(), read("modest"))
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(began), time.Second, "it is the first to get a seat that is given back")
		ticket.Leave()
		time.Sleep(time.Minute)
	})
}

func TestExemptAndReject(t *testing.T) {
	c := New(Config{Seats: 1})
	for range 1000 {
		_, err := c.Enter(t.Context(), Request{User: "admin", Groups: []string{"system:masters"}, Verb: "list", Resource: "pods"})
		require.NoError(t, err)
	}
	reject := limited("strict", 1, 0, 0, 0)
	reject.Spec.Limited.LimitResponse.Type = flowcontrolv1.LimitResponseTypeReject
	zero := int32(0)
	reject.Spec.Limited.BorrowingLimitPercent = &zero
	strict := schema("strict", "strict", 3, byUser, groups("system:authenticated"), everything())
	strict.UID, reject.UID = "schema-uid", "level-uid"
	c.Configure(append(DefaultSchemas(), strict), append(DefaultLevels(), reject))
	ticket, err := c.Enter(t.Context(), read("a"))
	require.NoError(t, err)
	require.Equal(t, "schema-uid", ticket.SchemaUID)
	require.Equal(t, "level-uid", ticket.LevelUID)
	refused, err := c.Enter(t.Context(), read("b"))
	var rejected *RejectedError
	require.ErrorAs(t, err, &rejected)
	require.Equal(t, ReasonConcurrency, rejected.Reason)
	require.Equal(t, "level-uid", refused.LevelUID, "the headers say which level that was")
	ticket.Leave()
	ticket.Leave() // once is enough
	_, err = c.Enter(t.Context(), read("b"))
	require.NoError(t, err)
}

func TestQueueFullAndTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{Seats: 1, MaxWait: 10 * time.Second})
		one := limited("one", 100, 0, 1, 1)
		one.Spec.Limited.LimitResponse.Queuing.QueueLengthLimit = 2
		zero := int32(0)
		one.Spec.Limited.BorrowingLimitPercent = &zero
		c.Configure([]*flowcontrolv1.FlowSchema{schema("one", "one", 3, byUser, groups("system:authenticated"), everything())},
			[]*flowcontrolv1.PriorityLevelConfiguration{one})
		ticket, err := c.Enter(t.Context(), read("a"))
		require.NoError(t, err)
		reasons := make(chan string, 2)
		for range 2 {
			go func() {
				_, err := c.Enter(t.Context(), read("a"))
				reasons <- err.(*RejectedError).Reason
			}()
		}
		synctest.Wait()
		_, err = c.Enter(t.Context(), read("a"))
		require.Equal(t, ReasonQueueFull, err.(*RejectedError).Reason)
		require.Equal(t, ReasonTimeout, <-reasons)
		require.Equal(t, ReasonTimeout, <-reasons)
		gone, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = c.Enter(gone, read("a"))
		require.ErrorIs(t, err, context.Canceled)
		time.AfterFunc(time.Second, ticket.Leave)
		_, err = c.Enter(t.Context(), read("a"))
		require.NoError(t, err, "the seat that was given back")
	})
}

// A level whose object is deleted lets go of all who wait in it.
func TestLevelThatGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{Seats: 1})
		own := schema("own", "own", 3, byUser, groups("system:authenticated"), everything())
		level := limited("own", 1, 0, 8, 2)
		zero := int32(0)
		level.Spec.Limited.BorrowingLimitPercent = &zero
		c.Configure([]*flowcontrolv1.FlowSchema{own}, []*flowcontrolv1.PriorityLevelConfiguration{level})
		done := make(chan error, 11)
		for range 11 {
			go func() {
				_, err := c.Enter(t.Context(), read("a"))
				done <- err
			}()
		}
		synctest.Wait()
		require.Len(t, done, 1)
		c.Configure(nil, nil)
		for range 11 {
			require.NoError(t, <-done)
		}
	})
}

func TestBorrowing(t *testing.T) {
	c := New(Config{Seats: 245})
	l := c.levels["global-default"]
	require.Equal(t, 20, l.nominal)
	for i := range 20 + 10 + 10 + 20 + 90 { // its own, and what system, node-high, workload-high and workload-low lend
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := c.Enter(ctx, read(fmt.Sprint("u", i)))
		require.NoError(t, err, i)
	}
	require.False(t, c.mayRun(l), "all that can be lent is lent")
	require.True(t, c.mayRun(c.levels["workload-low"]), "others have their own seats nevertheless")
	require.True(t, c.mayRun(c.levels["leader-election"]))
}

func TestHand(t *testing.T) {
	seen := map[string]bool{}
	for i := range 1000 {
		h := hand("s", fmt.Sprint(i), 64, 6)
		different := map[int]bool{}
		for _, q := range h {
			require.GreaterOrEqual(t, q, 0)
			require.Less(t, q, 64)
			different[q] = true
		}
		require.Len(t, different, 6)
		seen[fmt.Sprint(h)] = true
	}
	require.Greater(t, len(seen), 990)
	require.ElementsMatch(t, []int{0, 1, 2}, hand("s", "f", 3, 3))
}

func TestMatch(t *testing.T) {
	c := New(Config{})
	for _, m := range []struct {
		request Request
		schema  string
	}{
		{Request{User: "a", Groups: []string{"system:masters", "system:authenticated"}, Verb: "get", Path: "/api"}, "exempt"},
		{Request{User: "system:anonymous", Groups: []string{"system:unauthenticated"}, Verb: "get", Path: "/readyz"}, "probes"},
		{Request{User: "system:anonymous", Groups: []string{"system:unauthenticated"}, Verb: "get", Path: "/version"}, "global-default"},
		{Request{User: "system:node:a", Groups: []string{"system:nodes", "system:authenticated"}, Verb: "patch", Resource: "nodes/status"}, "system-node-high"},
		{Request{User: "system:node:a", Groups: []string{"system:nodes"}, Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-node-lease"}, "system-node-high"},
		{Request{User: "system:node:a", Groups: []string{"system:nodes"}, Verb: "get", Resource: "pods", Namespace: "a"}, "system-nodes"},
		{Request{User: "system:kube-scheduler", Groups: []string{"system:authenticated"}, Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-system"}, "system-leader-election"},
		{Request{User: "system:kube-scheduler", Groups: []string{"system:authenticated"}, Verb: "list", Resource: "nodes"}, "kube-scheduler"},
		{Request{User: "system:serviceaccount:kube-system:x", Groups: []string{"system:serviceaccounts"}, Verb: "list", Resource: "pods"}, "kube-system-service-accounts"},
		{Request{User: "system:serviceaccount:default:x", Groups: []string{"system:serviceaccounts"}, Verb: "list", Resource: "pods"}, "service-accounts"},
		{read("jane"), "global-default"},
		{Request{User: "nobody", Verb: "get", Path: "/"}, "catch-all"},
	} {
		s, _ := c.match(&m.request)
		require.Equal(t, m.schema, s.Name, "%+v", m.request)
	}
}
