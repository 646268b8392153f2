package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typeddiscovery "k8s.io/client-go/kubernetes/typed/discovery/v1"

	"kontiki/internal/policypeers"
)

// peerSlices is the slices of one policy on their way from what is there to what is wanted. An address stays in the slice that it
// is in, so that the coming or going of a pod is the change of one slice of at most maxEndpointsPerSlice endpoints.
//
// Names are made from what a slice is for and a number: a creation that the cache does not show yet fails when it is tried
// again, instead of making a second one.
type peerSlices struct {
	policy   *networkingv1.NetworkPolicy
	existing map[string][]*discoveryv1.EndpointSlice // by selection and group

	create, update, remove []*discoveryv1.EndpointSlice
}

func newPeerSlices(policy *networkingv1.NetworkPolicy, objects []any) *peerSlices {
	p := &peerSlices{policy: policy, existing: map[string][]*discoveryv1.EndpointSlice{}}
	for _, obj := range objects {
		slice := obj.(*discoveryv1.EndpointSlice)
		if slice.DeletionTimestamp == nil && slice.Namespace == policy.Namespace {
			key := sliceKey(slice.Labels[policypeers.LabelSelection], policypeers.GroupOf(slice))
			p.existing[key] = append(p.existing[key], slice)
		}
	}
	return p
}

func sliceKey(selection, group string) string { return selection + " " + group }

// want plans the slices of a group.
func (p *peerSlices) want(selection *policypeers.Selection, group *policypeers.Group) {
	key := sliceKey(selection.Key, group.ID())
	there := p.existing[key]
	delete(p.existing, key)
	slices.SortFunc(there, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })

	left := make(map[netip.Addr]bool, len(group.Addresses)) // those that have no slice yet
	for _, address := range group.Addresses {
		left[address] = true
	}
	kept := make([][]netip.Addr, len(there))
	for i, slice := range there {
		for _, address := range policypeers.AddressesIn(slice, group.IPv6) {
			if left[address] {
				delete(left, address)
				kept[i] = append(kept[i], address)
			}
		}
	}
	fresh := slices.DeleteFunc(slices.Clone(group.Addresses), func(a netip.Addr) bool { return !left[a] })
	for i, slice := range there {
		room := min(maxEndpointsPerSlice-len(kept[i]), len(fresh))
		room = max(room, 0)
		all := append(kept[i], fresh[:room]...)
		fresh = fresh[room:]
		p.keep(slice, all)
	}
	taken := map[string]bool{}
	for _, slice := range there {
		taken[slice.Name] = true
	}
	for n := 0; len(fresh) > 0; n++ {
		if name := p.name(key, n); !taken[name] {
			some := fresh[:min(maxEndpointsPerSlice, len(fresh))]
			fresh = fresh[len(some):]
			p.create = append(p.create, p.slice(name, selection, group, some))
		}
	}
}

// keep plans what becomes of a slice that is there. Whatever else somebody has put into it goes: it would be a peer.
func (p *peerSlices) keep(slice *discoveryv1.EndpointSlice, addresses []netip.Addr) {
	switch {
	case len(addresses) == 0:
		p.remove = append(p.remove, slice)
	case !hasExactly(slice, addresses):
		changed := slice.DeepCopy()
		changed.Endpoints = endpointsAt(addresses)
		p.update = append(p.update, changed)
	}
}

func (p *peerSlices) slice(name string, selection *policypeers.Selection, group *policypeers.Group, addresses []netip.Addr) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: p.policy.Namespace, Labels: policypeers.Labels(p.policy.UID, selection),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p.policy, networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"))},
		},
		AddressType: group.AddressType(), Ports: group.Ports, Endpoints: endpointsAt(addresses),
	}
}

// name is that of a group's slice number n. The policy's name is in it for the reader, as far as it fits.
func (p *peerSlices) name(key string, n int) string {
	digest := sha256.Sum256([]byte(string(p.policy.UID) + " " + key))
	return fmt.Sprintf("%s-%s-%d", strings.TrimRight(p.policy.Name[:min(len(p.policy.Name), 50)], "-."), hex.EncodeToString(digest[:6]), n)
}

func endpointsAt(addresses []netip.Addr) []discoveryv1.Endpoint {
	endpoints := make([]discoveryv1.Endpoint, len(addresses))
	for i, address := range addresses {
		endpoints[i].Addresses = []string{address.String()}
	}
	return endpoints
}

// hasExactly says whether the endpoints of a slice are these addresses, one each.
func hasExactly(slice *discoveryv1.EndpointSlice, addresses []netip.Addr) bool {
	return slices.EqualFunc(slice.Endpoints, addresses, func(e discoveryv1.Endpoint, a netip.Addr) bool {
		return len(e.Addresses) == 1 && e.Addresses[0] == a.String()
	})
}

// write does what is planned. What is added comes first: a pod that moves between slices is never in none.
func (p *peerSlices) write(ctx context.Context, client typeddiscovery.EndpointSliceInterface) error {
	for _, unwanted := range p.existing {
		p.remove = append(p.remove, unwanted...)
	}
	var failed error
	for _, slice := range p.create {
		_, err := client.Create(ctx, slice, metav1.CreateOptions{})
		failed = errors.Join(failed, err)
	}
	for _, slice := range p.update {
		_, err := client.Update(ctx, slice, metav1.UpdateOptions{})
		failed = errors.Join(failed, err)
	}
	for _, slice := range p.remove {
		err := client.Delete(ctx, slice.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(slice.UID))})
		if !apierrors.IsNotFound(err) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
