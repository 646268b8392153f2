package policypeers

import (
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ManagedBy is the value of the label endpointslice.kubernetes.io/managed-by of slices that carry peers.
const ManagedBy = "networkpolicy-controller.kontiki.io"

// Labels of the slices beside that.
const (
	LabelPolicy    = "kontiki.io/network-policy-uid"
	LabelSelection = "kontiki.io/network-policy-peers"
)

// ByPolicy is the name of the index of slices by PolicyOf.
const ByPolicy = "policypeers/policy"

// PolicyOf is the policy whose peers a slice carries, "" if it carries something else.
func PolicyOf(slice metav1.Object) types.UID {
	if slice.GetLabels()[discoveryv1.LabelManagedBy] != ManagedBy {
		return ""
	}
	return types.UID(slice.GetLabels()[LabelPolicy])
}

// IndexByPolicy is the function of the index ByPolicy.
func IndexByPolicy(obj any) ([]string, error) {
	if uid := PolicyOf(obj.(metav1.Object)); uid != "" {
		return []string{string(uid)}, nil
	}
	return nil, nil
}

// Labels are those of the slices of a selection.
func Labels(policy types.UID, selection *Selection) map[string]string {
	return map[string]string{discoveryv1.LabelManagedBy: ManagedBy, LabelPolicy: string(policy), LabelSelection: selection.Key}
}

// GroupOf is the ID of the group that a slice belongs to.
func GroupOf(slice *discoveryv1.EndpointSlice) string {
	return groupID(slice.AddressType == discoveryv1.AddressTypeIPv6, slice.Ports)
}

// AddressesIn are the addresses in a slice of one family.
func AddressesIn(slice *discoveryv1.EndpointSlice, isIPv6 bool) (addresses []netip.Addr) {
	for _, e := range slice.Endpoints {
		for _, text := range e.Addresses {
			if address, err := netip.ParseAddr(text); err == nil && address.Is6() == isIPv6 {
				addresses = append(addresses, address)
			}
		}
	}
	return addresses
}
