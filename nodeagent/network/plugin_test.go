package network

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// scripted is a network with one plugin, a shell script that writes each call to a file: its command, its container, and
// what it was told on standard input.
type scripted struct {
	*Network
	t   *testing.T
	dir string
}

// result is what a good plugin answers to ADD.
const result = `{"cniVersion":"1.1.0","interfaces":[{"name":"veth1"},{"name":"eth0","sandbox":"/run/netns/x"}],` +
	`"ips":[{"address":"192.0.2.1/32","interface":0},{"address":"10.1.0.5/24","interface":1},{"address":"fd00::5/64"}]}`

// newScripted has body decide what the plugin does once it has read its input; "$CNI_COMMAND" is what it is asked for.
func newScripted(t *testing.T, body string, timeout time.Duration) *scripted {
	s := &scripted{t: t, dir: t.TempDir()}
	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, "bin"), 0o755))
	s.plugin(body)
	s.conf(`{"cniVersion":"1.1.0","name":"test","plugins":[{"type":"script","mark":"first","capabilities":{"dns":true,"bandwidth":true,"portMappings":true}}]}`)
	s.open(timeout)
	return s
}

func (s *scripted) open(timeout time.Duration) {
	var err error
	s.Network, err = New(Config{
		ConfDir: filepath.Join(s.dir, "net.d"), BinDirs: []string{filepath.Join(s.dir, "empty"), filepath.Join(s.dir, "bin")},
		StateDir: filepath.Join(s.dir, "state"), Foreign: true, Timeout: timeout,
	})
	require.NoError(s.t, err)
}

func (s *scripted) plugin(body string) {
	text := "#!/bin/sh\ninput=$(cat)\n" +
		"echo \"$CNI_COMMAND $CNI_CONTAINERID $input\" >> " + filepath.Join(s.dir, "calls") + "\n" +
		`test "$CNI_COMMAND" = VERSION && echo '{"cniVersion":"1.1.0","supportedVersions":["0.4.0","1.0.0","1.1.0"]}' && exit` + "\n" + body + "\n"
	path := filepath.Join(s.dir, "bin", "script")
	require.NoError(s.t, os.WriteFile(path+".new", []byte(text), 0o755))
	require.NoError(s.t, os.Rename(path+".new", path))
}

func (s *scripted) conf(text string) {
	dir := filepath.Join(s.dir, "net.d")
	require.NoError(s.t, os.MkdirAll(dir, 0o755))
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, "10-test.conflist"), []byte(text), 0o644))
}

// calls are the commands that the plugin got, such as "ADD DEL", and forgets them.
func (s *scripted) calls() string {
	var commands []string
	for _, c := range s.inputs() {
		commands = append(commands, strings.Fields(c)[0])
	}
	return strings.Join(commands, " ")
}

func (s *scripted) inputs() []string {
	path := filepath.Join(s.dir, "calls")
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(s.t, err)
	require.NoError(s.t, os.Remove(path))
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

const good = "test \"$CNI_COMMAND\" = ADD && echo '" + result + "'; exit 0"

// TestFaultyPlugins: whatever a plugin does wrong, the error names it, a DEL follows, and the next try may succeed.
func TestFaultyPlugins(t *testing.T) {
	for _, c := range []struct{ name, add, err string }{
		{"own words", `echo '{"cniVersion":"1.1.0","code":11,"msg":"try again later","details":"busy"}'; exit 1`, "plugin type=\"script\" failed (add): try again later; busy"},
		{"stderr alone", "echo out of memory >&2; exit 3", `failed (add): exit status 3: "out of memory"`},
		{"silent", "exit 1", "failed (add): exit status 1"},
		{"garbage", "echo segfault; exit 0", `failed (add): its answer is not JSON: "segfault\n"`},
		{"garbage and failure", "echo '{half'; exit 1", `failed (add): exit status 1: "{half"`},
		{"endless", "exec yes", "its answer has more than 1048576 bytes"},
		{"no answer", "exit 0", "CNI ADD"},
		{"no address", `echo '{"cniVersion":"1.1.0","ips":[]}'`, "the plugins gave no address"},
		{"killed", "kill -9 $$", "signal: killed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScripted(t, "test \"$CNI_COMMAND\" = DEL && exit 0\n"+c.add, time.Minute)
			_, err := s.Attach(t.Context(), Pod{ID: "c1", NetNS: "/n"})
			require.ErrorContains(t, err, c.err)
			require.Equal(t, "ADD DEL", s.calls())
			s.plugin(good)
			addresses, err := s.Attach(t.Context(), Pod{ID: "c1", NetNS: "/n"})
			require.NoError(t, err)
			require.Equal(t, "[10.1.0.5 fd00::5]", fmt.Sprint(addresses), "the host's end of the pair is no address of the pod")
		})
	}
}

// TestHangingPlugin: one that hangs is ended with the program that it waits for.
func TestHangingPlugin(t *testing.T) {
	s := newScripted(t, `test "$CNI_COMMAND" = DEL && exit 0
sleep 1000 &
echo $! > `+"\"$(dirname $0)/../child\""+`
wait`, 300*time.Millisecond)
	_, err := s.Attach(t.Context(), Pod{ID: "c1", NetNS: "/n"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "it was ended, it took too long")
	require.Equal(t, "ADD DEL", s.calls())
	child, err := os.ReadFile(filepath.Join(s.dir, "child"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		b, err := os.ReadFile("/proc/" + strings.TrimSpace(string(child)) + "/stat")
		return err != nil || strings.Contains(string(b), ") Z ")
	}, time.Minute, 10*time.Millisecond)
}

// TestDelHasTheConfigurationOfItsAdd: the file may have changed or gone, and the agent restarted.
func TestDelHasTheConfigurationOfItsAdd(t *testing.T) {
	s := newScripted(t, good, time.Minute)
	pod := Pod{
		ID: "c1", Namespace: "ns", Name: "p", UID: "u", NetNS: "/n", Ports: []PortMapping{{HostPort: 80, ContainerPort: 8080, Protocol: "tcp"}},
		Annotations: map[string]string{ingressAnnotation: "80M"}, DNS: DNS{Servers: []string{"10.96.0.10"}},
	}
	_, err := s.Attach(t.Context(), pod)
	require.NoError(t, err)
	add := s.inputs()[0]
	require.Contains(t, add, `"portMappings":[{"hostPort":80,"containerPort":8080,"protocol":"tcp"}]`)
	require.Contains(t, add, `"bandwidth":{"ingressRate":80000000,"ingressBurst":10000000}`)
	require.Contains(t, add, `"dns":{"servers":["10.96.0.10"]}`)

	require.NoError(t, os.Remove(filepath.Join(s.dir, "net.d", "10-test.conflist")))
	s.open(time.Minute)
	require.ErrorIs(t, s.Ready(t.Context()), ErrNotReady)
	require.NoError(t, s.Check(t.Context(), Pod{ID: "c1", NetNS: "/n"}))
	require.Equal(t, "CHECK", s.calls())

	s.conf(`{"cniVersion":"1.0.0","name":"other","plugins":[{"type":"script","mark":"second"}]}`)
	require.NoError(t, s.Detach(t.Context(), Pod{ID: "c1"}))
	del := s.inputs()
	require.Len(t, del, 1)
	for _, text := range []string{"DEL c1 ", `"mark":"first"`, `"hostPort":80`, `"ingressRate":80000000`, `"prevResult":`, `"name":"test"`} {
		require.Contains(t, del[0], text)
	}
	require.NoError(t, s.Detach(t.Context(), Pod{ID: "c1"}), "again: with the configuration of today")
	require.Contains(t, s.inputs()[0], `"mark":"second"`)
}

// TestGarbageCollection: attachments of pods that are gone are deleted each with its own configuration, also of a network
// that is no more; those that are there stay; the plugins of today are told which they are.
func TestGarbageCollection(t *testing.T) {
	s := newScripted(t, good, time.Minute)
	for _, id := range []string{"old", "kept"} {
		_, err := s.Attach(t.Context(), Pod{ID: id, NetNS: "/n"})
		require.NoError(t, err)
	}
	s.conf(`{"cniVersion":"1.1.0","name":"newer","plugins":[{"type":"script","mark":"second"}]}`)
	_, err := s.Attach(t.Context(), Pod{ID: "new", NetNS: "/n"})
	require.NoError(t, err)
	s.inputs()
	require.NoError(t, s.GC(t.Context(), []string{"kept"}))
	got := s.inputs()
	require.Len(t, got, 3)
	require.True(t, strings.HasPrefix(got[0], "DEL new ") && strings.Contains(got[0], `"mark":"second"`), got[0])
	require.True(t, strings.HasPrefix(got[1], "DEL old ") && strings.Contains(got[1], `"mark":"first"`), got[1])
	require.True(t, strings.HasPrefix(got[2], "GC ") && strings.Contains(got[2], `[{"containerID":"kept","ifname":"eth0"}]`), got[2])

	s.conf(`{"cniVersion":"1.1.0","name":"newer","disableGC":true,"plugins":[{"type":"script"}]}`)
	require.NoError(t, s.GC(t.Context(), []string{"kept"}))
	require.Empty(t, s.calls(), "who says so is not asked")
}

// TestTornCacheEntry: a power cut leaves half an entry; the pod can be deleted all the same.
func TestTornCacheEntry(t *testing.T) {
	s := newScripted(t, good, time.Minute)
	_, err := s.Attach(t.Context(), Pod{ID: "c1", NetNS: "/n"})
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(s.cacheDir(), "results", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	b, err := os.ReadFile(files[0])
	require.NoError(t, err)
	for _, size := range []int64{0, int64(len(b) / 2)} {
		require.NoError(t, os.WriteFile(files[0], b[:size], 0o600))
		s.inputs()
		require.NoError(t, s.Detach(t.Context(), Pod{ID: "c1"}))
		require.Equal(t, "DEL", s.calls())
		require.NoFileExists(t, files[0])
	}
}

// TestReadiness: a configuration counts when its plugins are there, know its version, and do not object.
func TestReadiness(t *testing.T) {
	objects := `test "$CNI_COMMAND" = STATUS && test -e "$(dirname $0)/../down" && echo '{"cniVersion":"1.1.0","code":50,"msg":"no IPAM daemon"}' && exit 1; exit 0`
	s := newScripted(t, objects, time.Minute)
	require.NoError(t, s.Ready(t.Context()))
	require.Equal(t, "VERSION STATUS", s.calls())
	require.NoError(t, s.Ready(t.Context()))
	require.Empty(t, s.calls(), "good news is believed for a while")

	down := filepath.Join(s.dir, "down")
	require.NoError(t, os.WriteFile(down, nil, 0o644))
	s.readiness.at = time.Time{}
	for range 2 {
		err := s.Ready(t.Context())
		require.ErrorIs(t, err, ErrNotReady)
		require.ErrorContains(t, err, "no IPAM daemon")
	}
	require.NoError(t, os.Remove(down))
	require.NoError(t, s.Ready(t.Context()))
	s.calls()

	s.conf(`{"cniVersion":"0.4.0","cniVersions":["0.3.1","1.0.0","9.0.0"],"name":"test","plugins":[{"type":"script"}]}`)
	require.NoError(t, s.Ready(t.Context()))
	require.Equal(t, "VERSION", s.calls(), "STATUS is of version 1.1")
	_, err := s.Attach(t.Context(), Pod{ID: "c1", NetNS: "/n"})
	require.Error(t, err, "the script answers in version 1.1 alone")
	require.Contains(t, s.inputs()[0], `"cniVersion":"1.0.0"`, "the newest that both know")

	s.conf(`{"cniVersion":"0.2.0","name":"test","plugins":[{"type":"script"}]}`)
	require.ErrorContains(t, s.Ready(t.Context()), `plugin script does not support config version "0.2.0"`)
	s.conf(`{"cniVersion":"1.1.0","name":"test","plugins":[{"type":"missing"}]}`)
	require.ErrorContains(t, s.Ready(t.Context()), `failed to find plugin "missing"`)
}

// TestFirstFileByName, whatever its kind.
func TestFirstFileByName(t *testing.T) {
	s := newScripted(t, good, time.Minute)
	dir := filepath.Join(s.dir, "net.d")
	for name, text := range map[string]string{
		"00-ignored.txt": "x", "20-later.conflist": `{"cniVersion":"1.1.0","name":"later","plugins":[{"type":"script"}]}`,
		"05-single.conf": `{"cniVersion":"1.0.0","name":"single","type":"script"}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	_, err := s.Attach(t.Context(), Pod{ID: "c1", NetNS: "/n"})
	require.NoError(t, err)
	require.Contains(t, s.inputs()[0], `"name":"single"`)
	require.NoError(t, s.Detach(t.Context(), Pod{ID: "c1"}))
	require.Contains(t, s.inputs()[0], `"name":"single"`)
}

func TestBandwidthAnnotations(t *testing.T) {
	for text, want := range map[string]string{
		"10M": `{"ingressRate":10000000,"ingressBurst":1250000}`, "1k": `{"ingressRate":1000,"ingressBurst":1048576}`,
	} {
		b, err := bandwidthOf(map[string]string{ingressAnnotation: text})
		require.NoError(t, err)
		got, err := json.Marshal(b)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	for _, text := range []string{"", "fast", "999", "2P", "-1M", "0"} {
		_, err := bandwidthOf(map[string]string{egressAnnotation: text})
		require.ErrorIs(t, err, ErrBandwidth, text)
		require.ErrorContains(t, err, egressAnnotation)
	}
}
