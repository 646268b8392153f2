// Package netnstest gives tests network namespaces: machines of their own, as far as the network is concerned. They live as
// long as the test; nothing of them is seen outside, and nothing is left when it ends, however it does.
package netnstest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Space is a network namespace with its loopback interface up.
type Space struct {
	t      testing.TB
	name   string
	handle netns.NsHandle
}

// New makes a namespace; the test is skipped where that is not possible, or a program that the test needs is missing.
func New(t testing.TB, name string, programs ...string) *Space {
	t.Helper()
	for _, program := range append(programs, "ip") {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	made := make(chan netns.NsHandle)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		handle, err := netns.New()
		if err != nil {
			handle = netns.None()
		}
		made <- handle
	}()
	s := &Space{t: t, name: name, handle: <-made}
	if !s.handle.IsOpen() {
		t.Skip("needs network namespaces")
	}
	t.Cleanup(func() { _ = s.handle.Close() })
	s.Run("ip link set lo up")
	return s
}

// Path names the namespace for other programs, as long as the test runs.
func (s *Space) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), int(s.handle)) }

// In runs f on a thread in the namespace and waits for it. Sockets that f opens stay there, programs that it starts run
// there. f must not call the test's FailNow.
func (s *Space) In(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err := netns.Set(s.handle); err != nil {
			s.t.Errorf("namespace %s: %v", s.name, err)
			return
		}
		f()
	}()
	<-done
}

// Run runs commands in the namespace, each a program and its arguments with spaces between. One that fails ends the test.
func (s *Space) Run(commands ...string) {
	s.t.Helper()
	for _, command := range commands {
		words := strings.Fields(command)
		var out []byte
		var err error
		s.In(func() { out, err = exec.Command(words[0], words[1:]...).CombinedOutput() })
		require.NoError(s.t, err, "%s: %s: %s", s.name, command, out)
	}
}

// Set writes a kernel parameter of the namespace, and says whether it is there to be written.
func (s *Space) Set(path, value string) (ok bool) {
	s.In(func() { ok = os.WriteFile("/proc/sys/"+path, []byte(value), 0o644) == nil })
	return ok
}

// Connect lays a cable: an interface here, and one in another namespace, both up.
func (s *Space) Connect(name string, other *Space, nameThere string) {
	s.t.Helper()
	var err error
	s.In(func() {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = name
		err = netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: nameThere, PeerNamespace: netlink.NsFd(other.handle)})
	})
	require.NoError(s.t, err)
	s.Run("ip link set " + name + " up")
	other.Run("ip link set " + nameThere + " up")
}
