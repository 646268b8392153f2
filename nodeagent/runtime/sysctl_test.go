package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// What belongs to the machine is refused before anything is written.
func TestOnlyOwnSysctls(t *testing.T) {
	private := &runtimeapi.NamespaceOption{}
	onHost := &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE, Ipc: runtimeapi.NamespaceMode_NODE}
	for _, c := range []struct {
		name       string
		namespaces *runtimeapi.NamespaceOption
		ok         bool
	}{
		{"net.ipv4.tcp_syncookies", private, true},
		{"net/ipv4/tcp_syncookies", private, true},
		{"net.ipv4.conf.eth0/100.forwarding", private, true},
		{"kernel.shm_rmid_forced", private, true},
		{"fs.mqueue.msg_max", private, true},
		{"net.ipv4.tcp_syncookies", onHost, false},
		{"kernel.shm_rmid_forced", onHost, false},
		{"kernel.panic", private, false},
		{"kernel/panic", private, false},
		{"kernel.shm", private, false},
		{"vm.swappiness", private, false},
		{"net/../kernel/panic", private, false},
		{"net", private, false},
		{"", private, false},
	} {
		s := &sandbox{config: &runtimeapi.PodSandboxConfig{Linux: &runtimeapi.LinuxPodSandboxConfig{
			Sysctls:         map[string]string{c.name: "1"},
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: c.namespaces},
		}}}
		if err := s.checkSysctls(); c.ok {
			require.NoError(t, err, c.name)
		} else {
			require.ErrorIs(t, err, ErrInvalid, c.name)
		}
	}
}

func TestSysctlPath(t *testing.T) {
	for name, path := range map[string]string{
		"net.ipv4.ip_forward":               "net/ipv4/ip_forward",
		"net/ipv4/ip_forward":               "net/ipv4/ip_forward",
		"net.ipv4.conf.eth0/100.forwarding": "net/ipv4/conf/eth0.100/forwarding",
		"net/ipv4/conf/eth0.100/forwarding": "net/ipv4/conf/eth0.100/forwarding",
	} {
		require.Equal(t, path, sysctlPath(name))
	}
}
