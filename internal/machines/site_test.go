package machines

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	image  = flag.String("machines.image", "", "run the tests on machines: a directory with the image, which is made if it is not there")
	oldBin = flag.String("machines.old", "", "a bin/ of another version to upgrade from")
)

// limit is how long anything may take that the pages promise: they name seconds, tests run on busy machines.
const limit = 3 * time.Minute

// site is three machines that a page is followed on.
type site struct {
	t        *testing.T
	machines map[string]*Machine
	token    string // the one that was printed last
}

func newSite(t *testing.T, bin string) *site {
	if *image == "" {
		t.Skip("needs -machines.image: make three-machines")
	}
	require.Zero(t, os.Geteuid(), "needs root")
	for _, program := range []string{"systemd-nspawn", "mmdebstrap", "nsenter", "ip"} {
		_, err := exec.LookPath(program)
		require.NoError(t, err, "Debian's systemd-container and mmdebstrap are needed")
	}
	ctx := context.WithoutCancel(t.Context())
	require.NoError(t, MakeImage(ctx, *image))
	dir, err := os.MkdirTemp(filepath.Dir(*image), "machines") // the image is where there is room
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	lan, err := NewLAN(ctx, fmt.Sprintf("machines%d", os.Getpid()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lan.Close()) })
	s := &site{t: t, machines: map[string]*Machine{}}
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("n%d", i)
		m, err := New(ctx, lan, name, fmt.Sprintf("10.0.0.%d", i), *image, bin, dir)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, m.Cut()) })
		require.NoError(t, m.PowerOn(s.ctx()))
		s.machines[name] = m
	}
	return s
}

// ctx is one of a step.
func (s *site) ctx() context.Context {
	ctx, cancel := context.WithTimeoutCause(s.t.Context(), limit, fmt.Errorf("not within %s", limit))
	s.t.Cleanup(cancel)
	return ctx
}

// section finds a part of a page in docs/.
func (s *site) section(page, heading string) Section {
	text, err := os.ReadFile(filepath.Join("../../docs", page))
	require.NoError(s.t, err)
	for _, section := range Page(string(text)) {
		if section.Heading == heading {
			return section
		}
	}
	require.FailNow(s.t, "no section "+heading+" in "+page)
	return Section{}
}

// joinToken is what pages write K10… for.
var joinToken = regexp.MustCompile(`K10[0-9a-f]+::\S+`)

// follow does what steps say, as they say it. What a person has to put in is a token that was printed before, and the ID of
// n3's member.
func (s *site) follow(steps []Step) {
	require.NotEmpty(s.t, steps)
	for _, step := range steps {
		m, command := s.machines[step.Machine], step.Command
		if strings.Contains(command, "K10…") {
			require.NotEmpty(s.t, s.token, "no token was printed before")
			command = strings.ReplaceAll(command, "K10…", s.token)
		}
		if strings.Contains(command, "remove ID") {
			command = strings.ReplaceAll(command, "ID", s.member("n3").id)
		}
		s.t.Logf("%s# %s", step.Machine, command)
		before := m.Boot()
		out, err := m.Run(s.ctx(), command)
		s.t.Log(out)
		switch command { // which end the shell that they are run from
		case "reboot":
			require.NoError(s.t, m.AwaitBoot(s.ctx(), before))
		case "poweroff":
			require.NoError(s.t, m.AwaitOff(s.ctx()))
		default:
			require.NoError(s.t, err)
		}
		if token := joinToken.FindString(out); token != "" {
			s.token = token
		}
	}
}

func (s *site) run(machine, script string) string {
	s.t.Helper()
	out, err := s.machines[machine].Run(s.ctx(), script)
	require.NoError(s.t, err)
	return strings.TrimSpace(out)
}

// await runs a script until it prints what is wanted.
func (s *site) await(machine, script, want string) {
	s.t.Helper()
	ctx := s.ctx()
	for {
		out, err := s.machines[machine].Run(ctx, script)
		if err == nil && strings.TrimSpace(out) == want {
			return
		}
		select {
		case <-ctx.Done():
			require.FailNow(s.t, "not seen within "+limit.String(), "%s# %s\nprints %q, not %q; %v", machine, script, out, want, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// member is one of the store.
type member struct{ id, role string }

// member is a machine's, as any other sees it.
func (s *site) member(machine string) member {
	for line := range strings.Lines(s.run("n1", "kontiki store members")) {
		if words := strings.Fields(line); len(words) > 4 && words[1] == machine {
			return member{words[0], words[4]}
		}
	}
	return member{}
}

// Scripts whose outputs say how the cluster is.
const (
	readyNodes = `kontiki kubectl get nodes --no-headers | awk '$2 == "Ready" {print $1}' | sort | tr '\n' ' '`
	voters     = `kontiki store members | grep -c -E '(Leader|Follower) +yes'`
	addresses  = `kontiki kubectl get endpointslices kubernetes -o jsonpath='{.endpoints[*].addresses[0]}' | tr ' ' '\n' | sort | tr '\n' ' '`
	// containers are those of the pods, with how often each was started.
	containers = `kontiki kubectl get pods --no-headers -o custom-columns=:.metadata.name,:.status.containerStatuses[0].containerID | sort`
	runningPod = `kontiki kubectl get pods --no-headers | grep -c ' 1/1 .*Running'`
)

func (s *site) whole(by string) {
	s.t.Helper()
	s.await(by, readyNodes, "n1 n2 n3")
	s.await(by, voters, "3")
	s.await(by, addresses, "10.0.0.1 10.0.0.2 10.0.0.3")
	s.await(by, runningPod, "3")
}
