package watch_test

import (
	"context"
	"flag"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kontiki/apiserver/storage/etcd"
	"kontiki/internal/etcdtest"
	"kontiki/mvcc"
)

// TestWatchersOfEtcd_AP01_AP02_AP11 is the property test over a real etcd, which all runs share. An interruption cuts the
// connections of all watches.
func TestWatchersOfEtcd_AP01_AP02_AP11(t *testing.T) {
	server := etcdtest.Start(t)
	open := func(url string) *etcd.Store {
		s, err := etcd.Open(etcd.Config{Endpoints: []string{url}, Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	s := &etcdStore{Store: open(server.DirectURL()), watched: open(server.URL()), server: server, t: t}
	fewerChecks(t, "30") // etcd lets a watch that has to catch up wait for up to 100 ms
	rapid.Check(t, func(t *rapid.T) { propertyRun(t, s) })
}

// fewerChecks has rapid run so many checks in this test, unless the command line says how many.
func fewerChecks(t *testing.T, n string) {
	checks := flag.Lookup("rapid.checks")
	if before := checks.Value.String(); before == checks.DefValue {
		require.NoError(t, checks.Value.Set(n))
		t.Cleanup(func() { require.NoError(t, checks.Value.Set(before)) })
	}
}

// etcdStore is etcd. Its watches go through the connection that is cut, the rest does not: that the test's
// own requests fail is not what is tested here.
type etcdStore struct {
	*etcd.Store
	watched *etcd.Store
	server  *etcdtest.Server
	t       *testing.T
}

func (s *etcdStore) Watch(ctx context.Context, req mvcc.WatchRequest) <-chan mvcc.WatchBatch {
	return s.watched.Watch(ctx, req)
}

func (s *etcdStore) compact(revision int64) {
	require.NoError(s.t, s.Compact(s.t.Context(), revision))
}

func (s *etcdStore) interrupt(*rapid.T)   { s.server.Cut() }
func (s *etcdStore) hold()                {}
func (s *etcdStore) release()             {}
func (s *etcdStore) settle()              {}
func (s *etcdStore) quiet() time.Duration { return 2 * time.Millisecond }
