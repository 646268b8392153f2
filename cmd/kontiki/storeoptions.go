package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"time"

	"github.com/spf13/pflag"

	"kontiki/apiserver/storage/etcd"
	"kontiki/internal/bootstraptoken"
	"kontiki/raftstore"
)

// storeOptions is which store the API server uses, how the one in this process is served, and how much
// history is kept.
type storeOptions struct {
	endpoints        []string
	ca, cert, key    string
	config           etcd.Config // of the store outside, from the flags above
	clientPort       int
	peerPort         int
	join             []string // URLs as given
	token            string   // as given
	joinToken        *bootstraptoken.Join
	members          []string // hosts and ports of the store's members, as a server there says
	portGiven        bool     // the client port is no default: somebody counts on it
	historyRetention time.Duration
	raftLog          string
	snapshotCount    uint64
	snapshotInterval time.Duration
}

func (o *storeOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.endpoints, "store-endpoints", nil, "use an etcd at these URLs as the store, and run none here")
	fs.StringVar(&o.ca, "store-ca", "", "file with the authority of --store-endpoints (default: the system's)")
	fs.StringVar(&o.cert, "store-cert", "", "file with the client certificate for --store-endpoints")
	fs.StringVar(&o.key, "store-key", "", "file with the key of --store-cert")
	fs.IntVar(&o.clientPort, "client-port", 2379, "port of the store's etcd API; 0 to have none")
	fs.IntVar(&o.peerPort, "peer-port", 2380, "port where the other members of the store reach this one; 0 to stay alone")
	fs.StringSliceVar(&o.join, "join", nil, "URL of a server (https://HOST:6443) whose cluster this one joins, with --token or a copy of its pki/; may be several")
	fs.StringVar(&o.raftLog, "raft-log", "", "where a new store keeps the raft log: wal (default) or boltdb; one in use stays where it is")
	fs.Uint64Var(&o.snapshotCount, "snapshot-count", 10_000, "raft entries between two snapshots")
	fs.DurationVar(&o.snapshotInterval, "snapshot-interval", 30*time.Second, "how often it is looked whether there are as many, roughly")
	fs.DurationVar(&o.historyRetention, "history-retention", time.Hour, "how long old revisions can be read and watched from; 0 for ever")
}

// addJoinFlags adds what a new server needs of one that is there.
func (o *storeOptions) addJoinFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.token, "token", "", "token with which a new server gets the cluster's keys (kontiki token create --for server); not needed any more once joined")
}

func (o *storeOptions) complete() error {
	if o.historyRetention != 0 && o.historyRetention < time.Minute {
		return wrong("history-retention", "%s is less than a minute", o.historyRetention)
	}
	if o.raftLog != "" && o.raftLog != raftstore.LogWAL && o.raftLog != raftstore.LogBoltDB {
		return wrong("raft-log", "%q is neither %s nor %s", o.raftLog, raftstore.LogWAL, raftstore.LogBoltDB)
	}
	if o.snapshotCount == 0 {
		return wrong("snapshot-count", "must be at least 1")
	}
	if o.snapshotInterval < time.Second {
		return wrong("snapshot-interval", "%s is less than a second", o.snapshotInterval)
	}
	if o.clientPort != 0 {
		if err := checkPort("client-port", o.clientPort); err != nil {
			return err
		}
	}
	if o.peerPort != 0 {
		if err := checkPort("peer-port", o.peerPort); err != nil {
			return err
		}
	}
	if err := o.completeJoin(); err != nil {
		return err
	}
	return o.completeEndpoints()
}

// completeEndpoints checks the flags about a store outside, and reads the files they name.
func (o *storeOptions) completeEndpoints() error {
	if len(o.endpoints) == 0 {
		for flag, value := range map[string]string{"store-ca": o.ca, "store-cert": o.cert, "store-key": o.key} {
			if value != "" {
				return wrong(flag, "is for --store-endpoints, which is not given")
			}
		}
		return nil
	}
	o.config = etcd.Config{Endpoints: o.endpoints}
	if err := o.config.Validate(); err != nil {
		return wrong("store-endpoints", "%v", err)
	}
	var err error
	o.config.TLS, err = o.tls()
	return err
}

func (o *storeOptions) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.ca != "" {
		pem, err := os.ReadFile(o.ca)
		if err != nil {
			return nil, wrong("store-ca", "%v", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, wrong("store-ca", "%s holds no certificate", o.ca)
		}
	}
	switch {
	case o.cert == "" && o.key == "":
		return config, nil
	case o.key == "":
		return nil, wrong("store-key", "must be given with --store-cert")
	case o.cert == "":
		return nil, wrong("store-cert", "must be given with --store-key")
	}
	if _, err := tls.LoadX509KeyPair(o.cert, o.key); err != nil {
		return nil, wrong("store-cert", "%v", err)
	}
	// Read again for each connection, so that a renewed certificate is used without a restart.
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		return &pair, err
	}
	return config, nil
}
