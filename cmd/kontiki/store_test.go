package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kontiki/internal/control"
)

// lookIntoStore runs each command about the store on a real member, in which a config map "kept" was created.
func lookIntoStore(t *testing.T, dir string) {
	t.Helper()
	store := func(args ...string) string {
		t.Helper()
		out, errOut, code := run(append(append([]string{"store"}, args...), "--data-dir", dir)...)
		require.Zero(t, code, errOut)
		return out
	}
	var members []control.StoreMember
	require.NoError(t, json.Unmarshal([]byte(store("status", "-o", "json")), &members))
	require.Len(t, members, 1)
	st := members[0].Status
	require.Equal(t, "Leader", st.Role)
	require.NotZero(t, st.Store.Revision)
	require.NotZero(t, st.LogBytes)
	require.NotEmpty(t, st.Vote)
	require.Contains(t, store("members"), members[0].ID)

	key := "/registry/configmaps/default/kept"
	log := store("log")
	require.Regexp(t, `txn +\d+ +kubernetes-admin \(kubectl.*\) +[0-9a-f-]{36} +if mod\(`+key+`\) = 0: put `+key, log)
	require.Contains(t, log, "configuration")
	require.Regexp(t, `txn +\d+ +system:apiserver \(kontiki-apiserver\) +\S+ +if mod\(/registry/namespaces/default\) = 0: put`, log)
	require.NotRegexp(t, `(txn|note|lease\S*|compact) +\S+ +- `, log, "somebody asked for everything")
	history := store("history", key)
	require.Regexp(t, `(?m)^\d+\.0 +put +\d+ +1 .*kubernetes-admin`, history)
	require.Len(t, strings.Split(strings.TrimSpace(store("log", "-o", "json", "--limit", "3")), "\n"), 3)
	require.Regexp(t, members[0].ID+` +\d+ +[0-9a-f]{64}`, store("hash"))
	require.Equal(t, "KIND  MEMBER\n", store("alarms"))
	require.Empty(t, store("defrag"))
	file := filepath.Join(t.TempDir(), "snapshot")
	require.Empty(t, store("snapshot", "save", file))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.EqualValues(t, 32, info.Size()%4096)
	require.Empty(t, store("compact", "2"))

	for _, wrong := range [][]string{{"hash", "--revision", "99999"}, {"alarms", "clear", "NOSPACE"}} {
		_, errOut, code := run(append(append([]string{"store"}, wrong...), "--data-dir", dir)...)
		require.Equal(t, 1, code, errOut)
	}
	require.Empty(t, store("alarms", "clear"))
	for _, bad := range [][]string{{"hash", "--revision", "-4"}, {"log", "--limit", "-1"}, {"alarms", "clear", "FOO"}, {"status", "-o", "yaml"}, {"compact", "x"}, {"history"}, {"recover"}, {"members", "remove"}} {
		_, errOut, code := run(append(append([]string{"store"}, bad...), "--data-dir", dir)...)
		require.Equal(t, 2, code, errOut)
	}
	_, errOut, code := run("store", "members", "remove", "x", "--data-dir", dir)
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "member not found")
	_, errOut, code = run("store", "snapshot", "restore", file, "--data-dir", dir)
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "in use by another kontiki")
}

// TestStoreRestore: a snapshot becomes a store where there is none, and only there.
func TestStoreRestore(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad"), make([]byte, 5000), 0o600))
	_, errOut, code := run("store", "snapshot", "restore", filepath.Join(dir, "bad"), "--data-dir", filepath.Join(dir, "data"))
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "snapshot is damaged")
	require.NoDirExists(t, filepath.Join(dir, "data", "store"))
	_, errOut, code = run("store", "recover", "--yes", "--data-dir", filepath.Join(dir, "data"))
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "there is no store")
}
