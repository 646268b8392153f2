package raftstore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

// TestThreeMembersOverTLS runs three members over TCP on loopback with mutual TLS: raft, forwarded
// writes and linearizable reads all go through it, and who has no certificate gets nowhere.
func TestThreeMembersOverTLS(t *testing.T) {
	server, client := newTLS(t)
	var networks []Network
	var peers []Peer
	for _, name := range names {
		n, err := Listen("127.0.0.1:0", "", server, client)
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

// newTLS makes a certificate authority and one certificate, for both ends of a connection.
func newTLS(t *testing.T) (server, client *tls.Config) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "store-ca"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	require.NoError(t, err)
	ca, err = x509.ParseCertificate(caDER)
	require.NoError(t, err)

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "member"}, NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"member"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	require.NoError(t, err)

	pool := x509.NewCertPool()
	pool.AddCert(ca)
	certificates := []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	server = &tls.Config{Certificates: certificates, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	client = &tls.Config{Certificates: certificates, RootCAs: pool, ServerName: "member"}
	return server, client
}
