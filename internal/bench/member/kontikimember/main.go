package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"kontiki/internal/bench/member"
	"kontiki/internal/memory"
	"kontiki/raftstore"
	"kontiki/raftstore/etcdapi"
)

func main() { member.Main(run) }

// run is a member with the default settings of `kontiki server`: see cmd/kontiki/memory.go and
// cmd/kontiki/storeoptions.go.
func run(s member.Spec, serve func(member.Front) error) error {
	go memory.Save(context.Background(), memory.MinLeeway) // it ends with the process
	file, err := os.Create(filepath.Join(s.Dir, "kontiki.log"))
	if err != nil {
		return err
	}
	defer file.Close()
	log := slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: slog.LevelInfo}))
	m, err := open(s, log)
	if err != nil {
		return err
	}
	defer m.Close()
	l, err := net.Listen("tcp", s.Client[s.Index])
	if err != nil {
		return fmt.Errorf("etcd API: %w", err)
	}
	api := etcdapi.New(m, etcdapi.Config{ClusterName: "bench", Log: log})
	defer api.Close()
	go func() { _ = api.Serve(l) }() // it ends with Close
	return serve(ownFront{m})
}

func open(s member.Spec, log *slog.Logger) (*raftstore.Member, error) {
	network, err := raftstore.Listen(s.Peer[s.Index], "", nil, nil)
	if err != nil {
		return nil, err
	}
	var peers []raftstore.Peer
	for i, p := range s.Peer {
		peers = append(peers, raftstore.Peer{ID: member.Name(i), Address: p})
	}
	return raftstore.Open(raftstore.Config{
		Dir: filepath.Join(s.Dir, "store"), NodeID: member.Name(s.Index), Network: network,
		Bootstrap: true, Peers: peers, ClientURLs: []string{"http://" + s.Client[s.Index]},
		HistoryRetention: time.Hour, Log: log,
	})
}
