package podstate

import (
	corev1 "k8s.io/api/core/v1"

	"kontiki/nodeagent/podspec"
)

// Terminate decides for a pod that shall end: first everything but the sidecars is stopped, all at once,
// then the sidecars one by one in the reverse of their order (KEP-753).
func Terminate(pod *corev1.Pod, state *State) *Plan {
	p := &planner{pod: pod, state: state, plan: &Plan{Waiting: map[string]Waiting{}}}
	p.drain("Stopping container %s")
	p.plan.Finished = len(p.plan.Kill) == 0
	return p.plan
}

// drain plans the next step of the pod's end.
func (p *planner) drain(format string) {
	sidecars := map[string]bool{}
	for i := range p.pod.Spec.InitContainers {
		if c := &p.pod.Spec.InitContainers[i]; IsSidecar(c) {
			sidecars[c.Name] = true
		}
	}
	for name, list := range p.state.Containers {
		if !sidecars[name] {
			p.drainContainer(name, list, format)
		}
	}
	for i := len(p.pod.Spec.InitContainers) - 1; i >= 0 && len(p.plan.Kill) == 0; i-- {
		name := p.pod.Spec.InitContainers[i].Name
		p.drainContainer(name, p.state.Containers[name], format)
	}
}

func (p *planner) drainContainer(name string, list []*Instance, format string) {
	for _, in := range list {
		if !in.Running() {
			continue
		}
		c := podspec.FindContainer(p.pod, name)
		if c == nil {
			c = &corev1.Container{Name: name} // it has no hooks any more
		}
		p.kill(c, in, format, nil)
	}
}
