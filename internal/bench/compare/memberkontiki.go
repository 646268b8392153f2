package compare

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"kontiki/raftstore"
	"kontiki/raftstore/etcdapi"
)

// runKontiki is a member with the default settings of `kontiki server`: see cmd/kontiki/memory.go and
// cmd/kontiki/storeoptions.go.
func runKontiki(s memberSpec, serve func(front) error) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	file, err := os.Create(filepath.Join(s.Dir, "kontiki.log"))
	if err != nil {
		return err
	}
	defer file.Close()
	log := slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: slog.LevelInfo}))
	member, err := openKontiki(s, log)
	if err != nil {
		return err
	}
	defer member.Close()
	l, err := net.Listen("tcp", s.Client[s.Index])
	if err != nil {
		return fmt.Errorf("etcd API: %w", err)
	}
	api := etcdapi.New(member, etcdapi.Config{ClusterName: "bench", Log: log})
	defer api.Close()
	go func() { _ = api.Serve(l) }() // it ends with Close
	return serve(ownFront{member})
}

func openKontiki(s memberSpec, log *slog.Logger) (*raftstore.Member, error) {
	network, err := raftstore.Listen(s.Peer[s.Index], "", nil, nil)
	if err != nil {
		return nil, err
	}
	var peers []raftstore.Peer
	for i, p := range s.Peer {
		peers = append(peers, raftstore.Peer{ID: memberName(i), Address: p})
	}
	return raftstore.Open(raftstore.Config{
		Dir: filepath.Join(s.Dir, "store"), NodeID: memberName(s.Index), Network: network,
		Bootstrap: true, Peers: peers, ClientURLs: []string{"http://" + s.Client[s.Index]},
		HistoryRetention: time.Hour, Log: log,
	})
}
