package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/internal/control"
	"kontiki/raftstore"
)

// TestStoreOfAnyMember: every column of the status is filled for each of three members, and their logs can be read and their files
// defragmented from any of them; of one that is down it is said why not. Its log can be read from its data directory.
func TestStoreOfAnyMember(t *testing.T) {
	if testing.Short() {
		t.Skip("runs three servers for half a minute")
	}
	a, b, c := startThree(t)
	a.kubectl("create", "configmap", "kept")
	created := time.Now()
	members := b.members()
	for name, m := range members {
		st := m.Status
		require.NotNil(t, st, name)
		require.Contains(t, []string{"Leader", "Follower"}, st.Role)
		require.NotZero(t, st.Term)
		require.NotZero(t, st.FirstIndex)
		require.GreaterOrEqual(t, st.LastIndex, st.CommitIndex)
		require.NotZero(t, st.CommitIndex)
		require.NotZero(t, st.Store.Applied)
		require.NotZero(t, st.Store.Revision)
		require.NotZero(t, st.LogBytes)
		require.Positive(t, st.Store.InUseBytes)
		require.LessOrEqual(t, st.Store.InUseBytes, st.Store.FileBytes)
		require.Equal(t, st.Store.FreePages > 0, st.Store.FileBytes > st.Store.InUseBytes)
		row := rowOf(t, b.store("status"), m.ID)
		require.Len(t, row, 17, "no notes: %v", row)
		require.Equal(t, []string{m.ID, name, st.Role}, row[:3])
	}
	logs := map[string]string{}
	for _, which := range []string{"n3", members["n3"].ID, members["n3"].Address, members["n3"].ClientURLs[0], strings.TrimPrefix(members["n3"].ClientURLs[0], "https://")} {
		logs[b.store("log", "--member", which, "--from", "3", "--limit", "5", "-o", "json")] = which
	}
	require.Len(t, logs, 1, "one member by all its names")
	require.Len(t, strings.Split(strings.TrimSpace(b.store("log", "--member", "n3", "--from", "3", "--limit", "5", "-o", "json")), "\n"), 5)
	require.Contains(t, b.store("log", "--member", "n3"), "put /registry/configmaps/default/kept")

	var done []defragmented
	require.NoError(t, json.Unmarshal([]byte(b.store("defrag", "--cluster", "-o", "json")), &done))
	require.Len(t, done, 3)
	require.Equal(t, "Leader", members[done[2].Name].Status.Role, "the leader last")
	for _, d := range done {
		require.Empty(t, d.Error)
		require.NotZero(t, d.BytesBefore)
		require.Less(t, d.BytesAfter, d.BytesBefore+1<<20, "the members go on writing meanwhile, but not that much")
	}
	require.Empty(t, b.store("defrag", "--member", "n3"))

	// A log without its member knows what the state on disk says: that follows within a second.
	time.Sleep(time.Until(created.Add(3 * time.Second)))
	c.kill()
	down := rowOf(t, b.store("status"), members["n3"].ID)
	require.Equal(t, []string{members["n3"].ID, "n3", "Unknown", "-"}, down[:4])
	require.Equal(t, "connection refused", strings.Join(down[len(down)-2:], " "))
	require.Contains(t, b.members()["n3"].Error, "connection refused")
	out, errOut, code := run("store", "defrag", "--cluster", "--data-dir", a.dir)
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "1 of 3 members were not defragmented")
	require.Contains(t, out, "connection refused")
	for problem, args := range map[string][]string{"connection refused": {"log", "--member", "n3"}, "member not found": {"defrag", "--member", "nobody"}} {
		_, errOut, code := run(append(append([]string{"store"}, args...), "--data-dir", a.dir)...)
		require.Equal(t, 1, code)
		require.Contains(t, errOut, problem)
	}

	var entries []raftstore.LogEntry
	for d := json.NewDecoder(strings.NewReader(c.store("log", "-o", "json"))); d.More(); {
		var e raftstore.LogEntry
		require.NoError(t, d.Decode(&e))
		entries = append(entries, e)
	}
	require.GreaterOrEqual(t, len(entries), int(members["n3"].Status.LastIndex))
	require.Len(t, strings.Split(strings.TrimSpace(c.store("log", "--limit", "3", "-o", "json")), "\n"), 3)
	found := false
	for _, e := range entries {
		for _, p := range e.Proposals {
			if len(p.Then) > 0 && strings.HasPrefix(p.Then[0], "put /registry/configmaps/default/kept") {
				require.True(t, e.Committed)
				require.NotZero(t, p.Revision)
				require.Equal(t, "kubernetes-admin", p.User)
				found = true
			}
		}
	}
	require.True(t, found)
	_, errOut, code = run("store", "log", "--member", "n1", "--data-dir", c.dir)
	require.Equal(t, 1, code)
	require.Contains(t, errOut, control.ErrNotRunning.Error())
	_, errOut, code = run("store", "defrag", "--cluster", "--member", "n1", "--data-dir", a.dir)
	require.Equal(t, 2, code, errOut)
	c.start() // reading changed nothing
	c.ready()
	a.voters(3)
}

// rowOf returns the words of the row of a table that begins with one.
func rowOf(t *testing.T, table, first string) []string {
	t.Helper()
	for line := range strings.Lines(table) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == first {
			return words
		}
	}
	require.Fail(t, "no row", "%s in %s", first, table)
	return nil
}
