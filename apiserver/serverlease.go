package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/storage"
	"kontiki/raftstore"
)

// Each server holds a Lease in kube-system as long as it lives, and the endpoints of the Service "kubernetes" are those
// that have one (serverendpoints.go), as with kube-apiserver's lease reconciler. A Lease that nobody renews is deleted by
// whoever notices. He goes by how long he himself has seen it unchanged, not by the time that stands in it: the machines'
// clocks need not agree.

const (
	// placePeriod is how often a server renews its Lease and looks at those of the others.
	placePeriod = 4 * time.Second
	// placeLife is how long a Lease may be seen unchanged. So a dead server is gone 8 to 16 seconds after its death.
	placeLife = 12 * time.Second
	// leaveLimit is how long a server that stops tries to take itself off the list: without a quorum it cannot.
	leaveLimit = time.Second
)

// serverLabel marks the Leases of API servers, under the key that kube-apiserver has for its own.
const serverLabel = "apiserver.kubernetes.io/identity"

const serverLabelValue = "kontiki"

// place is where this server is reached.
func (s *Server) place() netip.AddrPort {
	return netip.AddrPortFrom(s.config.AdvertiseAddress, s.config.AdvertisePort)
}

// leaseName is the name of the Lease of the server at a place.
func leaseName(place netip.AddrPort) string {
	return fmt.Sprintf("apiserver-%s-%d", strings.ReplaceAll(place.Addr().String(), ":", "-"), place.Port())
}

// takePlace puts this server among the endpoints, if pods can reach it.
func (s *Server) takePlace(ctx context.Context) error {
	if !reachable(s.config.AdvertiseAddress) {
		return nil
	}
	if err := s.renewPlace(ctx); err != nil {
		return err
	}
	return s.writeEndpoints(ctx)
}

// renewPlace writes the server's sign of life.
func (s *Server) renewPlace(ctx context.Context) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: leaseName(s.place()), Namespace: metav1.NamespaceSystem, Labels: map[string]string{serverLabel: serverLabelValue},
	}}
	return s.rewrite(ctx, lease, func(_ context.Context, obj runtime.Object) error {
		holder, seconds, now := s.place().String(), int32(placeLife/time.Second), metav1.NewMicroTime(time.Now())
		spec := &obj.(*coordinationv1.Lease).Spec
		spec.HolderIdentity, spec.LeaseDurationSeconds, spec.RenewTime = &holder, &seconds, &now
		return nil
	})
}

// keepPlace renews the Lease and removes those of servers that do not, until ctx ends.
func (s *Server) keepPlace(ctx context.Context) {
	tick := time.NewTicker(placePeriod)
	defer tick.Stop()
	var others sightings
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !s.booted.Load() {
			continue
		}
		err := s.tendPlaces(ctx, &others)
		if err != nil && !failing && ctx.Err() == nil { // once, not every time
			s.log.Warn("this server's place among the endpoints of the Service kubernetes could not be kept", "err", err)
		}
		failing = err != nil
	}
}

// tendPlaces renews the Lease, removes those of others that are over, and writes the endpoints. A server that pods cannot reach
// has no Lease, and looks after those that were left all the same: it may be the only one, on a machine that had an address.
func (s *Server) tendPlaces(ctx context.Context, others *sightings) error {
	ctx, cancel := context.WithTimeout(ctx, placePeriod)
	defer cancel()
	present := reachable(s.config.AdvertiseAddress)
	if present {
		if err := s.renewPlace(ctx); err != nil {
			return err
		}
	}
	leases, err := s.serverLeases(ctx)
	if err != nil {
		return err
	}
	stale := others.stale(leases, time.Now())
	for _, lease := range stale {
		if lease.Name == leaseName(s.place()) {
			continue
		}
		if err := s.removeLease(ctx, lease); err != nil {
			return err
		}
		s.log.Info("an API server has not renewed its lease and is no endpoint any more", "server", *lease.Spec.HolderIdentity)
	}
	if !present && len(stale) == 0 {
		return nil
	}
	return s.writeEndpoints(ctx)
}

// leavePlace takes this server off the list when it stops, so that nobody is sent to it any more.
func (s *Server) leavePlace() {
	if !reachable(s.config.AdvertiseAddress) || !s.booted.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(raftstore.WithOrigin(context.Background(), ownOrigin), leaveLimit)
	defer cancel()
	err := s.removeLease(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName(s.place())}})
	if err = errors.Join(err, s.writeEndpoints(ctx)); err != nil {
		s.log.Warn("this server stays among the endpoints of the Service kubernetes until its lease is over", "err", err)
	}
}

// serverLeases are those of all servers, as the store has them now.
func (s *Server) serverLeases(ctx context.Context) ([]*coordinationv1.Lease, error) {
	t, err := s.targetOf(&coordinationv1.Lease{}, metav1.NamespaceSystem)
	if err != nil {
		return nil, err
	}
	list, err := t.store.List(ctx, storage.ListOptions{Selection: storage.Selection{
		Namespace: metav1.NamespaceSystem, Labels: labels.SelectorFromSet(labels.Set{serverLabel: serverLabelValue}),
	}})
	if err != nil {
		return nil, err
	}
	var leases []*coordinationv1.Lease
	for _, item := range list.Items {
		if lease := item.Object().(*coordinationv1.Lease); lease.Spec.HolderIdentity != nil {
			leases = append(leases, lease)
		}
	}
	return leases, nil
}

// removeLease deletes a Lease unless it has changed since. That it is gone, or was renewed after all, is no error.
func (s *Server) removeLease(ctx context.Context, lease *coordinationv1.Lease) error {
	t, err := s.targetOf(lease, metav1.NamespaceSystem)
	if err != nil {
		return err
	}
	options := &metav1.DeleteOptions{}
	if lease.ResourceVersion != "" {
		options.Preconditions = &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}
	}
	if _, err = s.delete(ctx, t, options, nil); apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// sightings is since when each Lease has been seen as it is.
type sightings struct {
	looked time.Time
	leases map[string]sighting
}

type sighting struct {
	version string
	since   time.Time
}

// stale notes what is seen now and returns the Leases that have not changed for placeLife. Who has not looked for a while
// himself, because he slept or there was no quorum, begins anew: the others could perhaps not renew theirs either.
func (s *sightings) stale(leases []*coordinationv1.Lease, now time.Time) (stale []*coordinationv1.Lease) {
	if now.Sub(s.looked) > 2*placePeriod {
		s.leases = nil
	}
	next := map[string]sighting{}
	for _, lease := range leases {
		seen, known := s.leases[lease.Name]
		if !known || seen.version != lease.ResourceVersion {
			seen = sighting{version: lease.ResourceVersion, since: now}
		}
		if next[lease.Name] = seen; now.Sub(seen.since) >= placeLife {
			stale = append(stale, lease)
		}
	}
	s.looked, s.leases = now, next
	return stale
}
