package freeport

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const childVariable = "KONTIKI_FREEPORT_CHILD"

// Two processes that take ports at the same time, from the same place in the range, never get the same one.
func TestNoPortTwice(t *testing.T) {
	const each = 200
	if os.Getenv(childVariable) != "" {
		next = 0
		for range each {
			port, err := Take()
			require.NoError(t, err)
			_, _ = os.Stdout.WriteString("port " + strconv.Itoa(port) + "\n")
		}
		_, _ = os.Stdin.Read(make([]byte, 1)) // holds its ports until the parent has all
		return
	}
	var (
		wg    sync.WaitGroup
		outs  [3]string
		ended []func() error
	)
	for i := range outs {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNoPortTwice$")
		cmd.Env = append(os.Environ(), childVariable+"=1")
		hold, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		ended = append(ended, func() error { _ = hold.Close(); return cmd.Wait() })
		wg.Go(func() {
			buffer := make([]byte, 1<<16)
			for strings.Count(outs[i], "\n") < each {
				n, err := out.Read(buffer)
				if err != nil {
					return
				}
				outs[i] += string(buffer[:n])
			}
		})
	}
	wg.Wait()
	for _, end := range ended {
		require.NoError(t, end())
	}
	seen := map[string]bool{}
	for _, port := range strings.Fields(strings.ReplaceAll(strings.Join(outs[:], ""), "port ", "")) {
		require.False(t, seen[port], port)
		seen[port] = true
	}
	require.Len(t, seen, len(outs)*each)
}

func TestPortInUseIsPassedOver(t *testing.T) {
	port, err := Take()
	require.NoError(t, err)
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port+1)))
	if err != nil {
		t.Skip("the port after the one taken is in use by somebody else")
	}
	defer l.Close()
	other, err := Take()
	require.NoError(t, err)
	require.NotEqual(t, port+1, other)
}
