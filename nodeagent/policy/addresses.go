package policy

import (
	"net/netip"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// addresses is which pod of this node has which addresses, as the agent says: an address belongs to the last pod that it was
// given to. It is safe for concurrent use.
type addresses struct {
	mu    sync.Mutex // guards what follows; a leaf lock
	of    map[types.UID][]netip.Addr
	owner map[netip.Addr]types.UID
	// written are the pods whose rules, for the addresses that they have, the kernel has had at least once.
	written map[types.UID]bool
}

func newAddresses() *addresses {
	return &addresses{of: map[types.UID][]netip.Addr{}, owner: map[netip.Addr]types.UID{}, written: map[types.UID]bool{}}
}

// give makes addresses a pod's, and returns the pods that this changes; none if it had them and its rules are written.
func (a *addresses) give(uid types.UID, all []netip.Addr) (changed []types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Equal(a.of[uid], all) && a.written[uid] {
		return nil
	}
	a.dropLocked(uid)
	changed = []types.UID{uid}
	for _, address := range all {
		if other, taken := a.owner[address]; taken && other != uid {
			a.of[other] = slices.DeleteFunc(slices.Clone(a.of[other]), func(o netip.Addr) bool { return o == address })
			changed = append(changed, other)
		}
		a.owner[address] = uid
	}
	a.of[uid] = slices.Clone(all)
	return changed
}

// drop forgets a pod.
func (a *addresses) drop(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dropLocked(uid)
}

// dropLocked is drop. The caller holds mu.
func (a *addresses) dropLocked(uid types.UID) {
	for _, address := range a.of[uid] {
		delete(a.owner, address)
	}
	delete(a.of, uid)
	delete(a.written, uid)
}

func (a *addresses) get(uid types.UID) []netip.Addr {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[uid]
}

func (a *addresses) pods() (all []types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for uid := range a.of {
		all = append(all, uid)
	}
	return all
}

// setWritten notes that the kernel has the rules of a pod for these addresses.
func (a *addresses) setWritten(uid types.UID, of []netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.of[uid]; known && slices.Equal(a.of[uid], of) {
		a.written[uid] = true
	}
}

// unwritten are the addresses of a pod whose rules have not been written.
func (a *addresses) unwritten(uid types.UID) []netip.Addr {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.written[uid] {
		return nil
	}
	return a.of[uid]
}
