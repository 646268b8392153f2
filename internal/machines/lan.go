package machines

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// LAN is the network that machines are plugged into: a bridge in a network namespace.
type LAN struct{ namespace string }

// bridge is its name in the namespace.
const bridge = "lan0"

// NewLAN makes a network that is called name, as its namespace is.
func NewLAN(ctx context.Context, name string) (*LAN, error) {
	l := &LAN{namespace: name}
	for _, command := range []string{"netns add " + name, "-n " + name + " link add " + bridge + " type bridge", "-n " + name + " link set " + bridge + " up"} {
		if out, err := exec.CommandContext(ctx, "ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ip %s: %w: %s", command, err, out)
		}
	}
	return l, nil
}

// Close removes the network. Its machines are off by then.
func (l *LAN) Close() error {
	if out, err := exec.Command("ip", "netns", "delete", l.namespace).CombinedOutput(); err != nil {
		return fmt.Errorf("ip netns delete %s: %w: %s", l.namespace, err, out)
	}
	return nil
}
