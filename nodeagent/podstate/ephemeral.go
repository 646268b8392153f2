package podstate

import "kontiki/nodeagent/podspec"

// ephemeralContainers starts those that were added to the pod, which need nothing but its sandbox: they are there to look at a pod
// that does not do what it should (KEP-277). Each runs once, and has no part in the pod's phase and conditions.
func (p *planner) ephemeralContainers() {
	list := podspec.EphemeralContainers(p.pod)
	for i := range list {
		if c := &list[i]; p.state.Latest(c.Name) == nil && !p.hasRun(c.Name) {
			p.start(c, false, 0)
		}
	}
}

// hasRun says whether the API knows an instance of an ephemeral container, which the runtime may have lost.
func (p *planner) hasRun(name string) bool {
	for _, s := range p.pod.Status.EphemeralContainerStatuses {
		if s.Name == name && s.ContainerID != "" {
			return true
		}
	}
	return false
}
