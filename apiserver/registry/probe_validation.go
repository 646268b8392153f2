package registry

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// lifecycle judges what only long-running containers have: hooks and probes.
func (r containerRules) lifecycle(path *field.Path, c *corev1.Container) field.ErrorList {
	var faults field.ErrorList
	if c.Lifecycle != nil {
		hooks := path.Child("lifecycle")
		if h := c.Lifecycle.PostStart; h != nil {
			faults = append(faults, r.handler(hooks.Child("postStart"), hookHandler(h))...)
		}
		if h := c.Lifecycle.PreStop; h != nil {
			faults = append(faults, r.handler(hooks.Child("preStop"), hookHandler(h))...)
		}
	}
	faults = append(faults, r.probe(path.Child("livenessProbe"), c.LivenessProbe, true)...)
	faults = append(faults, r.probe(path.Child("readinessProbe"), c.ReadinessProbe, false)...)
	if p := c.ReadinessProbe; p != nil && p.TerminationGracePeriodSeconds != nil {
		faults = append(faults, field.Invalid(path.Child("readinessProbe", "terminationGracePeriodSeconds"), *p.TerminationGracePeriodSeconds, "must not be set for readinessProbes"))
	}
	return append(faults, r.probe(path.Child("startupProbe"), c.StartupProbe, true)...)
}

// probe: a liveness or startup probe succeeds at its first success.
func (r containerRules) probe(path *field.Path, p *corev1.Probe, once bool) field.ErrorList {
	if p == nil {
		return nil
	}
	faults := r.handler(path, handler{exec: p.Exec, httpGet: p.HTTPGet, tcp: p.TCPSocket, grpc: p.GRPC})
	faults = append(faults, notNegative(path.Child("initialDelaySeconds"), p.InitialDelaySeconds)...)
	faults = append(faults, notNegative(path.Child("timeoutSeconds"), p.TimeoutSeconds)...)
	faults = append(faults, notNegative(path.Child("periodSeconds"), p.PeriodSeconds)...)
	faults = append(faults, notNegative(path.Child("successThreshold"), p.SuccessThreshold)...)
	faults = append(faults, notNegative(path.Child("failureThreshold"), p.FailureThreshold)...)
	if g := p.TerminationGracePeriodSeconds; g != nil && *g <= 0 {
		faults = append(faults, field.Invalid(path.Child("terminationGracePeriodSeconds"), *g, "must be greater than 0"))
	}
	if once && p.SuccessThreshold != 1 {
		faults = append(faults, field.Invalid(path.Child("successThreshold"), p.SuccessThreshold, "must be 1"))
	}
	return faults
}

// handler is what probes and hooks have in common.
type handler struct {
	exec    *corev1.ExecAction
	httpGet *corev1.HTTPGetAction
	tcp     *corev1.TCPSocketAction
	grpc    *corev1.GRPCAction
	sleep   *corev1.SleepAction
}

func hookHandler(h *corev1.LifecycleHandler) handler {
	return handler{exec: h.Exec, httpGet: h.HTTPGet, tcp: h.TCPSocket, sleep: h.Sleep}
}

// handler: exactly one way to act, and that one right.
func (r containerRules) handler(path *field.Path, h handler) field.ErrorList {
	var faults field.ErrorList
	found := false
	one := func(child string, set bool, check func(*field.Path) field.ErrorList) {
		switch {
		case !set:
		case found:
			faults = append(faults, field.Forbidden(path.Child(child), "may not specify more than 1 handler type"))
		default:
			found = true
			faults = append(faults, check(path.Child(child))...)
		}
	}
	one("exec", h.exec != nil, func(p *field.Path) field.ErrorList {
		if len(h.exec.Command) == 0 {
			return field.ErrorList{field.Required(p.Child("command"), "")}
		}
		return nil
	})
	one("httpGet", h.httpGet != nil, func(p *field.Path) field.ErrorList { return validateHTTPGet(p, h.httpGet) })
	one("tcpSocket", h.tcp != nil, func(p *field.Path) field.ErrorList { return portOrName(p.Child("port"), h.tcp.Port) })
	one("grpc", h.grpc != nil, func(p *field.Path) field.ErrorList {
		return portOrName(p.Child("port"), intstr.FromInt32(h.grpc.Port))
	})
	one("sleep", h.sleep != nil, func(p *field.Path) field.ErrorList {
		if grace := r.pod.TerminationGracePeriodSeconds; grace != nil && (h.sleep.Seconds < 0 || h.sleep.Seconds > *grace) {
			detail := fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", *grace)
			return field.ErrorList{field.Invalid(p, h.sleep.Seconds, detail)}
		}
		return nil
	})
	if !found {
		faults = append(faults, field.Required(path, "must specify a handler type"))
	}
	return faults
}

func validateHTTPGet(path *field.Path, get *corev1.HTTPGetAction) field.ErrorList {
	faults := required(path.Child("path"), get.Path)
	faults = append(faults, portOrName(path.Child("port"), get.Port)...)
	faults = append(faults, supported(path.Child("scheme"), get.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
	for _, h := range get.HTTPHeaders {
		faults = append(faults, invalid(path.Child("httpHeaders"), h.Name, validation.IsHTTPHeaderName(h.Name))...)
	}
	return faults
}
