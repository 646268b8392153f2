package runtime

import (
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// networkUsage reads the counters of the pod's interfaces. A pod on the host's network has
// none of its own.
func (s *sandbox) networkUsage(now int64) (*runtimeapi.NetworkUsage, error) {
	if s.hostNetwork() {
		return nil, fmt.Errorf("%w: host network", ErrUnsupported)
	}
	f, err := os.Open(s.netNS())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, err := netlink.NewHandleAt(netns.NsHandle(int(f.Fd())))
	if err != nil {
		return nil, err
	}
	defer h.Close()
	links, err := h.LinkList()
	if err != nil {
		return nil, err
	}
	out := &runtimeapi.NetworkUsage{Timestamp: now}
	for _, l := range links {
		st := l.Attrs().Statistics
		if st == nil || l.Attrs().Name == "lo" {
			continue
		}
		u := &runtimeapi.NetworkInterfaceUsage{
			Name: l.Attrs().Name, RxBytes: number(st.RxBytes), RxErrors: number(st.RxErrors),
			TxBytes: number(st.TxBytes), TxErrors: number(st.TxErrors),
		}
		if out.DefaultInterface == nil {
			out.DefaultInterface = u
		}
		out.Interfaces = append(out.Interfaces, u)
	}
	return out, nil
}
