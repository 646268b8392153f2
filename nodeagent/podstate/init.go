package podstate

import corev1 "k8s.io/api/core/v1"

// initContainers plans the init containers, in order, and says whether the main containers may run. A
// regular one must have succeeded in this sandbox, a sidecar must have started up, before the next one
// begins. Once a main container exists in this sandbox the regular ones are over, whatever is
// left of them in the runtime (ND-13), and only the sidecars are looked after.
func (p *planner) initContainers() bool {
	over := p.mainsBegan()
	for i := range p.pod.Spec.InitContainers {
		c := &p.pod.Spec.InitContainers[i]
		in := p.state.latestIn(p.state.Sandbox(), c.Name)
		if IsSidecar(c) {
			p.sidecar(c, in)
			if !over && !(in.Running() && p.probes(in.Id).Started) {
				return false
			}
			continue
		}
		if over || in.Exited() && in.Code() == 0 {
			continue
		}
		switch {
		case in == nil:
			p.start(c, true, 0)
		case in.Exited():
			p.restart(c, in, true)
		}
		return false
	}
	return true
}

// sidecar starts a sidecar anew in a new sandbox, and otherwise treats it as a main container.
func (p *planner) sidecar(c *corev1.Container, in *Instance) {
	if in == nil {
		p.start(c, true, 0)
		return
	}
	p.container(c, true)
}

func (p *planner) mainsBegan() bool {
	for i := range p.pod.Spec.Containers {
		if p.state.latestIn(p.state.Sandbox(), p.pod.Spec.Containers[i].Name) != nil {
			return true
		}
	}
	return false
}
