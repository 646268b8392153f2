package nodeproxy

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
)

// endless is input without an end, until the test ends.
type endless struct{ end <-chan struct{} }

func (e endless) Read(p []byte) (int, error) {
	select {
	case <-e.end:
		return 0, io.EOF
	default:
		return len(p), nil
	}
}

// A command that ends while the client still sends it input: what it has said arrives, and how it ended (yes | kubectl exec
// -i p -- head -1).
func TestLastWordsOfACommandArrive(t *testing.T) {
	w := start(t)
	const said = 100_000
	for name, e := range w.executors(t, "/exec?stdin=true&stdout=true&command=say&command=100000") {
		for round := range 50 {
			var out bytes.Buffer
			err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: endless{t.Context().Done()}, Stdout: &out})
			var code exec.CodeExitError
			require.ErrorAs(t, err, &code, "%s, round %d", name, round)
			require.Equal(t, 7, code.Code)
			require.Equal(t, said, out.Len(), "%s, round %d", name, round)
		}
	}
}
