package apiclient

import (
	"crypto/tls"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/internal/livetls"
)

// Who makes a client for one question, as a node that tries to join every few seconds does, leaves nothing behind.
func TestForgottenClientsAreNotKept(t *testing.T) {
	servers := OpenServers(ServersConfig{Given: []string{"https://127.0.0.1:1"}})
	source := livetls.Static(&tls.Config{})
	kept := servers.Live(source)
	for range 1000 {
		servers.Live(source)
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		last := servers.Live(source)
		defer runtime.KeepAlive(last)
		return len(servers.clients) <= 3
	}, time.Minute, time.Millisecond)
	require.Contains(t, servers.snapshotClients(), kept.Transport)
}
