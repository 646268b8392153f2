// Program etcdmember is an etcd that internal/bench/compare starts and loads.
package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/server/v3/embed"

	"kontiki/internal/bench/member"
)

func main() { member.Main(run) }

// run is an etcd with its default settings, except for its addresses and where it logs.
func run(s member.Spec, serve func(member.Front) error) error {
	c := embed.NewConfig()
	c.Dir, c.Name = filepath.Join(s.Dir, "etcd"), member.Name(s.Index)
	client, peer := plainURL(s.Client[s.Index]), plainURL(s.Peer[s.Index])
	c.ListenClientUrls, c.AdvertiseClientUrls = client, client
	c.ListenPeerUrls, c.AdvertisePeerUrls = peer, peer
	var members []string
	for i, p := range s.Peer {
		members = append(members, fmt.Sprintf("%s=http://%s", member.Name(i), p))
	}
	c.InitialCluster = strings.Join(members, ",")
	c.LogLevel, c.LogOutputs = "warn", []string{filepath.Join(s.Dir, "etcd.log")}
	e, err := embed.StartEtcd(c)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer e.Close()
	return serve(nil)
}

func plainURL(host string) []url.URL { return []url.URL{{Scheme: "http", Host: host}} }
