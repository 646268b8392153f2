package raftstore

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

// TestThreeMembersOverTLS runs three members over TCP on loopback with mutual TLS: raft, forwarded
// writes and linearizable reads all go through it, and who has no certificate gets nowhere.
func TestThreeMembersOverTLS(t *testing.T) {
	authority := newAuthority(t)
	_, client := authority.issue(t, "store-client")
	var networks []Network
	var peers []Peer
	for _, name := range names {
		server, client := authority.issue(t, name)
		n, err := Listen("127.0.0.1:0", "", server, always(client))
		require.NoError(t, err)
		networks = append(networks, n)
		peers = append(peers, Peer{ID: name, Address: n.Address()})
	}
	var members []*Member
	for i, name := range names {
		m := openMember(t, Config{Dir: t.TempDir(), NodeID: name, Network: networks[i], Bootstrap: true, Peers: peers, RequestTimeout: 30 * time.Second})
		defer func() { require.NoError(t, m.Close()) }()
		members = append(members, m)
	}
	for i, m := range members {
		_, err := m.Txn(t.Context(), putTxn("k", names[i]))
		require.NoError(t, err)
		for _, other := range members {
			res, err := other.Range(t.Context(), mvcc.RangeRequest{Key: []byte("k")})
			require.NoError(t, err)
			require.Equal(t, names[i], string(res.KVs[0].Value))
		}
	}
	_, err := members[1].Txn(t.Context(), mvcc.TxnRequest{Then: []mvcc.Op{{Put: &mvcc.PutRequest{Key: []byte("x"), IgnoreValue: true}}}})
	require.ErrorIs(t, err, mvcc.ErrKeyNotFound, "errors keep their identity, forwarded or not")

	stranger, err := tls.Dial("tcp", peers[0].Address, &tls.Config{RootCAs: client.RootCAs, ServerName: client.ServerName})
	if err == nil { // in TLS 1.3 the refusal comes with the first read
		require.NoError(t, stranger.SetDeadline(time.Now().Add(10*time.Second)))
		_, err = stranger.Read(make([]byte, 1))
	}
	require.ErrorContains(t, err, "certificate required")
}

// testAuthority is a certificate authority.
type testAuthority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *testAuthority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "store-ca"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	require.NoError(t, err)
	ca, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return &testAuthority{ca, key}
}

// always is a client's configuration that does not change.
func always(config *tls.Config) func() *tls.Config {
	if config == nil {
		return nil
	}
	return func() *tls.Config { return config }
}

// issue makes a certificate for a name, for both ends of a connection.
func (a *testAuthority) issue(t *testing.T, name string) (server, client *tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name, "peer"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, key.Public(), a.key)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	certificates := []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	server = &tls.Config{Certificates: certificates, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	client = &tls.Config{Certificates: certificates, RootCAs: pool, ServerName: "peer"}
	return server, client
}

// TestRaftIsForMembers: a certificate of the authority is enough to ask, but not to send raft's messages; a member that
// joined while another was away is admitted by it all the same.
func TestRaftIsForMembers(t *testing.T) {
	authority := newAuthority(t)
	open := func(dir, name, address string, tune func(*Config)) *Member {
		server, client := authority.issue(t, "node-"+name)
		n, err := Listen(address, "", server, always(client))
		require.NoError(t, err)
		cfg := Config{Dir: dir, NodeID: name, Name: "node-" + name, Network: n, RequestTimeout: 30 * time.Second}
		tune(&cfg)
		return openMember(t, cfg)
	}
	a := open(t.TempDir(), "a", "127.0.0.1:0", func(c *Config) { c.Bootstrap = true })
	defer func() { require.NoError(t, a.Close()) }()
	at := a.cfg.Network.Address()
	joins := func(c *Config) { c.Join = []string{at} }
	dir := t.TempDir()
	b := open(dir, "b", "127.0.0.1:0", joins)
	voters := func(want int) {
		t.Helper()
		require.Eventually(t, func() bool {
			n := 0
			for _, m := range a.LocalMembers() {
				if !m.Learner && m.Name != "" {
					n++
				}
			}
			return n == want
		}, 30*time.Second, 10*time.Millisecond)
	}
	voters(2)
	address := b.cfg.Network.Address()

	c := open(t.TempDir(), "c", "127.0.0.1:0", joins)
	defer func() { require.NoError(t, c.Close()) }()
	voters(3)
	require.NoError(t, b.Close()) // b is away while d joins, and d leads when it is back
	d := open(t.TempDir(), "d", "127.0.0.1:0", joins)
	defer func() { require.NoError(t, d.Close()) }()
	voters(4)
	require.NoError(t, a.MoveLeader(t.Context(), "d"))
	b = open(dir, "b", address, func(*Config) {})
	defer func() { require.NoError(t, b.Close()) }()
	require.NoError(t, b.WaitReady(t.Context()))
	require.Equal(t, "d", b.Leader().ID)

	_, stranger := authority.issue(t, "node-x")
	for kind, admitted := range map[byte]bool{streamRaft: false, streamForward: true} {
		conn, err := tls.Dial("tcp", at, stranger)
		require.NoError(t, err)
		_, err = conn.Write([]byte{kind})
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(3*time.Second)))
		_, err = conn.Read(make([]byte, 1))
		require.Equal(t, admitted, errors.Is(err, os.ErrDeadlineExceeded), "kind %c: %v", kind, err)
		require.NoError(t, conn.Close())
	}
}

// TestJoinUnderItsOwnName: a certificate lets a member in under a name that it is for, and no other: not that of a member
// whose disk was lost, whose place it would take, nor a new one.
func TestJoinUnderItsOwnName(t *testing.T) {
	authority := newAuthority(t)
	open := func(id, name, certificate string, tune func(*Config)) *Member {
		server, client := authority.issue(t, certificate)
		n, err := Listen("127.0.0.1:0", "", server, always(client))
		require.NoError(t, err)
		cfg := Config{Dir: t.TempDir(), NodeID: id, Name: name, Network: n, RequestTimeout: 30 * time.Second}
		tune(&cfg)
		return openMember(t, cfg)
	}
	a := open("a", "node-a", "node-a", func(c *Config) { c.Bootstrap = true })
	defer func() { require.NoError(t, a.Close()) }()
	joins := func(c *Config) { c.Join = []string{a.cfg.Network.Address()} }
	for _, claimed := range []struct{ id, name string }{{"x", "node-a"}, {"x", "node-b"}, {"node-a", ""}, {"x", ""}} {
		x := open(claimed.id, claimed.name, "node-x", joins)
		ended, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		require.ErrorIs(t, x.WaitReady(ended), ErrStranger, "%+v", claimed)
		cancel()
		require.NoError(t, x.Close())
	}
	require.Len(t, a.LocalMembers(), 1)
	x := open("x", "node-x", "node-x", joins)
	defer func() { require.NoError(t, x.Close()) }()
	require.NoError(t, x.WaitReady(t.Context()))
	require.Equal(t, []string{"node-a", "node-x"}, []string{a.LocalMembers()[0].Name, a.LocalMembers()[1].Name})
}

// anyone admits every connection.
func anyone(net.Conn) error { return nil }

// TestFirstStartUnderTLS: a new member takes its own message that makes it the leader at once, though nobody has noted its
// name yet. It waited for the heartbeat timeout, and warned of itself.
func TestFirstStartUnderTLS(t *testing.T) {
	server, client := newAuthority(t).issue(t, "node-a")
	n, err := Listen("127.0.0.1:0", "", server, always(client))
	require.NoError(t, err)
	var log bytes.Buffer // read after Close, when nobody writes any more
	m := openMember(t, Config{Dir: t.TempDir(), NodeID: "a", Name: "node-a", Network: n, RequestTimeout: 30 * time.Second, Bootstrap: true,
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	require.NoError(t, m.WaitReady(t.Context()))
	require.NoError(t, m.Close())
	require.Contains(t, log.String(), "entering leader state")
	require.NotContains(t, log.String(), "refused raft messages")
	require.NotContains(t, log.String(), "heartbeat timeout reached")
}
