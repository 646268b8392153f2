package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kontiki/internal/pki"
)

// dialPatience bounds how long one server or node is waited for.
const dialPatience = 5 * time.Second

// allFollowed asks the cluster who is in it, and each of them what it shows: an API server or a node whose certificate is
// not of the new authority still depends on the old one. An agent renews its client certificate before the one it serves
// with, so the latter speaks for both. One that does not answer cannot be known.
func (f *certsFlags) allFollowed(ctx context.Context) error {
	roots, err := pki.NewRoots(f.pkiDir())
	if err != nil {
		return err
	}
	_, client, err := (&tokenFlags{local: f.local}).admin()
	if err != nil {
		return err
	}
	places, err := whoServes(ctx, client)
	if err != nil {
		return fmt.Errorf("the cluster cannot be asked who is in it: %w", err)
	}
	var errs []error
	for who, address := range places {
		if err := showsNew(ctx, address, roots); err != nil {
			errs = append(errs, fmt.Errorf("%s (%s): %w", who, address, err))
		}
	}
	return errors.Join(errs...)
}

// whoServes are the addresses of API servers and of nodes' agents.
func whoServes(ctx context.Context, client kubernetes.Interface) (map[string]string, error) {
	places := map[string]string{}
	list, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
	if err != nil {
		return nil, err
	}
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			for _, address := range e.Addresses {
				if len(slice.Ports) > 0 && slice.Ports[0].Port != nil {
					places["API server "+address] = net.JoinHostPort(address, strconv.Itoa(int(*slice.Ports[0].Port)))
				}
			}
		}
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, n := range nodes.Items {
		for _, a := range n.Status.Addresses {
			if port := n.Status.DaemonEndpoints.KubeletEndpoint.Port; a.Type == corev1.NodeInternalIP && port != 0 {
				places["node "+n.Name] = net.JoinHostPort(a.Address, strconv.Itoa(int(port)))
			}
		}
	}
	return places, nil
}

var errNotFollowed = errors.New("its certificate is of the old authority")

// showsNew says whether who is at an address has a certificate of the new authority. It shows none itself: what the other
// end says in the handshake is all that is wanted.
func showsNew(ctx context.Context, address string, roots *x509.CertPool) error {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	looked := false
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, VerifyConnection: func(state tls.ConnectionState) error {
		looked = true
		usages := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		if _, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, KeyUsages: usages}); err != nil {
			return errNotFollowed
		}
		return nil
	}}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err == nil {
		return conn.Close()
	}
	if looked && !errors.Is(err, errNotFollowed) && strings.Contains(err.Error(), "certificate required") {
		return nil // it wants to see one, as agents do
	}
	return err
}
