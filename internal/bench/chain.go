package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kontiki/apiserver/admission"
	"kontiki/apiserver/audit"
	"kontiki/internal/bench/apiload"
	"kontiki/internal/controlplane"
	"kontiki/internal/pki"
)

// chainRounds is how often each server has its turn; figures are medians.
const chainRounds = 15

// guarded is an API server with more or less of the request chain. All know the client by its certificate.
type guarded struct {
	what   string
	user   string // an identity of pki
	change func(dir string, c *controlplane.Config)

	plane *controlplane.ControlPlane
	keys  *pki.PKI
	maps  []time.Duration
	pods  []time.Duration
}

// chains are what is compared with the first one. A master is asked for no role; the scheduler, given one by the bench, is.
func chains() []*guarded {
	return []*guarded{
		{what: "neither roles, admission nor audit", user: pki.Admin, change: func(_ string, c *controlplane.Config) {
			c.Admission.Disabled = append(admission.Names(),
				"MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook")
		}},
		{what: "roles and admission, as by default", user: pki.Scheduler, change: func(string, *controlplane.Config) {}},
		{what: "and an audit log of all writes, in batches", user: pki.Scheduler, change: withAuditLog(audit.ModeBatch)},
		{what: "and an audit log of all writes, before the answer", user: pki.Scheduler, change: withAuditLog(audit.ModeBlocking)},
	}
}

// withAuditLog adds a log in which every write is, by the default policy.
func withAuditLog(mode audit.Mode) func(string, *controlplane.Config) {
	return func(dir string, c *controlplane.Config) {
		c.Audit.File = &audit.FileConfig{Path: filepath.Join(dir, "audit.log"), Mode: mode}
	}
}

// benchChain measures what the stages of the request chain add to a create, in turns.
func benchChain(ctx context.Context, dir string, each time.Duration) (err error) {
	all := chains()
	for i, g := range all {
		if err := g.open(ctx, filepath.Join(dir, fmt.Sprint("chain", i))); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, g.plane.Close()) }()
	}
	for range chainRounds {
		for _, g := range all {
			l, err := apiload.CreateLatency(ctx, apiload.Config{REST: g.plane.Client(g.user, g.keys.Client(g.user)), Each: each})
			if err != nil {
				return fmt.Errorf("%s: %w", g.what, err)
			}
			g.maps, g.pods = append(g.maps, l.ConfigMap), append(g.pods, l.Pod)
		}
	}
	for _, g := range all {
		report("chain: "+g.what, "ConfigMap %s, Pod %s",
			against(median(g.maps), median(all[0].maps)), against(median(g.pods), median(all[0].pods)))
	}
	return nil
}

func (g *guarded) open(ctx context.Context, dir string) (err error) {
	if g.keys, err = pki.Open(filepath.Join(dir, "pki"), pki.Options{NodeName: "bench"}); err != nil {
		return err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	config := controlplane.Config{
		Dir: filepath.Join(dir, "store"), PKI: g.keys, Listener: listener, Log: slog.New(slog.DiscardHandler),
		ClusterCIDR: netip.MustParsePrefix("10.244.0.0/16"), ServiceCIDR: netip.MustParsePrefix("10.96.0.0/16"),
	}
	g.change(dir, &config)
	if g.plane, err = controlplane.Open(config); err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := g.plane.WaitReady(ready); err != nil {
		return err
	}
	return g.allow(ctx)
}

// allow lets the scheduler do what the loads do.
func (g *guarded) allow(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(g.plane.Client(pki.Admin, g.keys.Client(pki.Admin)))
	if err != nil {
		return err
	}
	name := metav1.ObjectMeta{Name: "bench"}
	if _, err := client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{
		Verbs: []string{"create", "deletecollection"}, APIGroups: []string{""}, Resources: []string{"namespaces", "serviceaccounts", "configmaps", "pods"},
	}}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: name,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bench"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:kube-scheduler"}},
	}, metav1.CreateOptions{})
	return err
}

func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)/2]
}

// against is d beside what it is compared with.
func against(d, base time.Duration) string {
	return fmt.Sprintf("%s (%+.1f %%)", d.Round(time.Microsecond), 100*(float64(d)/float64(base)-1))
}
