package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestResolveUser(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "etc"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/passwd"), []byte("root:x:0:0:::\nweb:x:33:34:::\nbroken\nbig:x:99999999999:1:::\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/group"), []byte("staff:x:50:web,root\nextra:x:51:web\n"), 0o644))
	id := func(n int64) *runtimeapi.Int64Value { return &runtimeapi.Int64Value{Value: n} }
	type sc = runtimeapi.LinuxContainerSecurityContext
	for what, c := range map[string]struct {
		image string
		sc    *sc
		want  specs.User
		bad   bool
	}{
		"nothing":              {"", &sc{}, specs.User{AdditionalGids: []uint32{0, 50}}, false},
		"name":                 {"web", &sc{}, specs.User{UID: 33, GID: 34, AdditionalGids: []uint32{34, 50, 51}}, false},
		"number in the file":   {"33", &sc{}, specs.User{UID: 33, GID: 34, AdditionalGids: []uint32{34, 50, 51}}, false},
		"number not there":     {"7", &sc{}, specs.User{UID: 7, AdditionalGids: []uint32{0}}, false},
		"name and group name":  {"web:staff", &sc{}, specs.User{UID: 33, GID: 50, AdditionalGids: []uint32{50, 51}}, false},
		"numbers":              {"7:8", &sc{}, specs.User{UID: 7, GID: 8, AdditionalGids: []uint32{8}}, false},
		"pod's user":           {"web", &sc{RunAsUser: id(5)}, specs.User{UID: 5, AdditionalGids: []uint32{0}}, false},
		"pod's user and group": {"web", &sc{RunAsUser: id(33), RunAsGroup: id(6)}, specs.User{UID: 33, GID: 6, AdditionalGids: []uint32{6, 50, 51}}, false},
		"pod's user name":      {"", &sc{RunAsUsername: "web"}, specs.User{UID: 33, GID: 34, AdditionalGids: []uint32{34, 50, 51}}, false},
		"supplemental":         {"web", &sc{SupplementalGroups: []int64{7, 50}}, specs.User{UID: 33, GID: 34, AdditionalGids: []uint32{7, 34, 50, 51}}, false},
		"strict":               {"web", &sc{SupplementalGroups: []int64{7}, SupplementalGroupsPolicy: runtimeapi.SupplementalGroupsPolicy_Strict}, specs.User{UID: 33, GID: 34, AdditionalGids: []uint32{7, 34}}, false},
		"unknown name":         {"nobody", &sc{}, specs.User{}, true},
		"unknown group":        {"web:nogroup", &sc{}, specs.User{}, true},
		"negative":             {"", &sc{RunAsUser: id(-1)}, specs.User{}, true},
		"negative group":       {"", &sc{SupplementalGroups: []int64{-1}}, specs.User{}, true},
		"too large":            {"big", &sc{}, specs.User{}, true},
	} {
		got, err := resolveUser(root, c.image, c.sc)
		require.Equal(t, c.bad, err != nil, "%s: %v", what, err)
		if !c.bad {
			require.Equal(t, c.want, got, what)
		}
	}
	require.NoError(t, os.Remove(filepath.Join(root, "etc/passwd")))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(root, "etc/passwd")))
	_, err := resolveUser(root, "daemon", &sc{})
	require.ErrorIs(t, err, ErrInvalid, "the host's file is not the image's")
}

func TestCommandLine(t *testing.T) {
	entry, cmd := []string{"entry"}, []string{"cmd"}
	for _, c := range []struct{ command, args, want []string }{
		{nil, nil, []string{"entry", "cmd"}},
		{nil, []string{"a"}, []string{"entry", "a"}},
		{[]string{"c"}, nil, []string{"c"}},
		{[]string{"c"}, []string{"a"}, []string{"c", "a"}},
	} {
		require.Equal(t, c.want, commandLine(&runtimeapi.ContainerConfig{Command: c.command, Args: c.args}, entry, cmd))
	}
}

func TestEnvironmentLastWins(t *testing.T) {
	require.Equal(t, []string{"A=3", "B=2", "C", "D="}, lastWins([]string{"A=1", "B=2", "C", "A=3", "D="}))
}

func TestCapabilitySets(t *testing.T) {
	all := []string{"CAP_A", "CAP_B", "CAP_C"}
	for _, c := range []struct{ add, drop, want []string }{
		{nil, nil, []string{"CAP_A"}},
		{[]string{"b"}, nil, []string{"CAP_A", "CAP_B"}},
		{nil, []string{"ALL"}, nil},
		{[]string{"CAP_B"}, []string{"ALL"}, []string{"CAP_B"}},
		{[]string{"ALL"}, []string{"B"}, []string{"CAP_A", "CAP_C"}},
		{[]string{"A"}, []string{"A"}, []string{"CAP_A"}},
	} {
		got := changeSet([]string{"CAP_A"}, &runtimeapi.Capability{AddCapabilities: c.add, DropCapabilities: c.drop}, all)
		require.ElementsMatch(t, c.want, got)
	}
}

func TestSignals(t *testing.T) {
	for in, want := range map[string]string{"": "SIGTERM", "QUIT": "SIGQUIT", "sigint": "SIGINT", "9": "SIGKILL", "nonsense": "SIGTERM", "SIG999": "SIGTERM"} {
		require.Equal(t, want, checkedSignal(in), in)
	}
}

func TestErrorsBecomeCodes(t *testing.T) {
	require.Equal(t, codes.NotFound, status.Code(toStatus(errors.Join(errors.New("x"), ErrNotFound))))
	require.Equal(t, codes.DeadlineExceeded, status.Code(toStatus(context.DeadlineExceeded)))
	require.Equal(t, codes.Unknown, status.Code(toStatus(errors.New("x"))))
	require.Equal(t, codes.Aborted, status.Code(toStatus(status.Error(codes.Aborted, "x"))))
	require.NoError(t, toStatus(nil))
}
