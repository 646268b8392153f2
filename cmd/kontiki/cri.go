package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"kontiki/internal/control"
	"kontiki/internal/lab"
)

// Sockets of a running node, in its data directory.
const (
	controlSocket = "control.sock"
	criSocket     = "agent/cri.sock"
)

// local is how `image`, `ctr` and `store` find the node that runs on this machine.
type local struct {
	dataDir string
	cri     string
}

func (l *local) addFlags(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&l.dataDir, "data-dir", "", "data directory of the node (default: $KONTIKI_DATA_DIR, else ./.kontiki, else /var/lib/kontiki)")
}

func (l *local) addRuntimeFlags(cmd *cobra.Command) {
	l.addFlags(cmd)
	cmd.PersistentFlags().StringVar(&l.cri, "runtime", "", "unix:///socket of a CRI runtime (default: the node's own)")
}

func (l *local) dir() string {
	if l.dataDir != "" {
		return l.dataDir
	}
	if dir := os.Getenv(lab.DataDirEnv); dir != "" {
		return dir
	}
	if _, err := os.Stat(filepath.Join(devDataDir, "lock")); err == nil {
		return devDataDir
	}
	return serverDataDir
}

func (l *local) control() *control.Client {
	return control.NewClient(filepath.Join(l.dir(), controlSocket))
}

// runtime connects to the CRI runtime; the caller closes the connection.
func (l *local) runtime() (*grpc.ClientConn, error) {
	path := filepath.Join(l.dir(), criSocket)
	if l.cri != "" {
		var ok bool
		if path, ok = strings.CutPrefix(l.cri, "unix://"); !ok {
			return nil, wrong("runtime", "%q does not begin with unix://", l.cri)
		}
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("no node with containers is running here: %w", err)
	}
	return dialRuntime(path)
}

func dialRuntime(path string) (*grpc.ClientConn, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return grpc.NewClient("unix://"+abs, grpc.WithTransportCredentials(insecure.NewCredentials()))
}
