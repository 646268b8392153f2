package registry

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// containerRules is what the rules for one pod's containers share.
type containerRules struct {
	pod     *corev1.PodSpec
	volumes map[string]*corev1.Volume // those without a fault
	claims  map[string]bool           // the names of the pod's resource claims
	names   names                     // of the containers seen so far, of every sort
}

func (r containerRules) regular(path *field.Path, containers []corev1.Container) field.ErrorList {
	if len(containers) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	var faults, conflicts field.ErrorList
	ports := names{}
	for i := range containers {
		c, at := &containers[i], path.Index(i)
		faults = append(faults, r.common(at, c)...)
		faults = append(faults, r.names.add(at.Child("name"), c.Name)...)
		faults = append(faults, r.lifecycle(at, c)...)
		faults = append(faults, restartPolicy(at, c.RestartPolicy, c.RestartPolicyRules)...)
		conflicts = append(conflicts, hostPorts(at.Child("ports"), c.Ports, ports)...)
	}
	return append(faults, conflicts...)
}

// init containers run one after the other, so that their ports do not clash; those that restart
// always (sidecars) may have probes and hooks.
func (r containerRules) init(path *field.Path, containers []corev1.Container) field.ErrorList {
	var faults field.ErrorList
	for i := range containers {
		c, at := &containers[i], path.Index(i)
		faults = append(faults, r.common(at, c)...)
		faults = append(faults, restartPolicy(at, c.RestartPolicy, c.RestartPolicyRules)...)
		faults = append(faults, r.names.add(at.Child("name"), c.Name)...)
		faults = append(faults, hostPorts(at.Child("ports"), c.Ports, names{})...)
		if isSidecar(c) {
			faults = append(faults, r.lifecycle(at, c)...)
			continue
		}
		faults = append(faults, forbidden(at, "may not be set for init containers without restartPolicy=Always",
			part{"lifecycle", c.Lifecycle != nil}, part{"livenessProbe", c.LivenessProbe != nil},
			part{"readinessProbe", c.ReadinessProbe != nil}, part{"startupProbe", c.StartupProbe != nil})...)
		for j, p := range c.ResizePolicy {
			if p.RestartPolicy == corev1.RestartContainer {
				faults = append(faults, field.Invalid(at.Child("resizePolicy").Index(j).Child("restartPolicy"), p.RestartPolicy,
					"must not be set to 'RestartContainer' for non-sidecar initContainers"))
			}
		}
	}
	return faults
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// ephemeral containers are for debugging: no ports, probes, hooks or resources.
func (r containerRules) ephemeral(path *field.Path, containers []corev1.EphemeralContainer) field.ErrorList {
	var faults field.ErrorList
	targets := names{}
	for name := range r.names {
		targets[name] = true
	}
	for i := range containers {
		e, at := &containers[i], path.Index(i)
		c := (*corev1.Container)(&e.EphemeralContainerCommon)
		faults = append(faults, r.common(at, c)...)
		faults = append(faults, trimmedImage(at, c)...)
		faults = append(faults, r.names.add(at.Child("name"), c.Name)...)
		if e.TargetContainerName != "" && !targets[e.TargetContainerName] {
			faults = append(faults, field.NotFound(at.Child("targetContainerName"), e.TargetContainerName))
		}
		const detail = "cannot be set for an Ephemeral Container"
		faults = append(faults, forbidden(at, detail,
			part{"ports", c.Ports != nil}, part{"resources", c.Resources.Limits != nil || c.Resources.Requests != nil || c.Resources.Claims != nil},
			part{"resizePolicy", c.ResizePolicy != nil}, part{"restartPolicy", c.RestartPolicy != nil}, part{"restartPolicyRules", c.RestartPolicyRules != nil},
			part{"livenessProbe", c.LivenessProbe != nil}, part{"readinessProbe", c.ReadinessProbe != nil}, part{"startupProbe", c.StartupProbe != nil},
			part{"lifecycle", c.Lifecycle != nil})...)
		for j, m := range c.VolumeMounts {
			faults = append(faults, forbidden(at.Child("volumeMounts").Index(j), detail, part{"subPath", m.SubPath != ""}, part{"subPathExpr", m.SubPathExpr != ""})...)
		}
	}
	return faults
}

// A part is a field that may be set, or not.
type part struct {
	name string
	set  bool
}

// forbidden: none of the parts may be set.
func forbidden(path *field.Path, detail string, parts ...part) field.ErrorList {
	var faults field.ErrorList
	for _, p := range parts {
		if p.set {
			faults = append(faults, field.Forbidden(path.Child(p.name), detail))
		}
	}
	return faults
}

func (r containerRules) common(path *field.Path, c *corev1.Container) field.ErrorList {
	faults := dnsLabel(path.Child("name"), c.Name)
	faults = append(faults, required(path.Child("image"), c.Image)...)
	faults = append(faults, oneOf(path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	faults = append(faults, validatePorts(path.Child("ports"), c.Ports)...)
	faults = append(faults, validateEnv(path.Child("env"), c.Env)...)
	faults = append(faults, validateEnvFrom(path.Child("envFrom"), c.EnvFrom)...)
	faults = append(faults, r.mounts(path.Child("volumeMounts"), c)...)
	faults = append(faults, r.devices(path.Child("volumeDevices"), c)...)
	faults = append(faults, pullPolicyFaults(path.Child("imagePullPolicy"), c.ImagePullPolicy)...)
	faults = append(faults, resourceRules{containerResource, r.claims}.validate(path.Child("resources"), &c.Resources)...)
	faults = append(faults, r.resizePolicy(path.Child("resizePolicy"), c.ResizePolicy)...)
	return append(faults, validateContainerSecurity(path.Child("securityContext"), c.SecurityContext, r.pod.HostUsers)...)
}

func pullPolicyFaults(path *field.Path, p corev1.PullPolicy) field.ErrorList {
	return oneOf(path, p, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
}

// resizePolicy: whether a container starts anew when it gets more or less.
func (r containerRules) resizePolicy(path *field.Path, list []corev1.ContainerResizePolicy) field.ErrorList {
	var faults field.ErrorList
	seen := map[corev1.ResourceName]bool{}
	for i, p := range list {
		if seen[p.ResourceName] {
			faults = append(faults, field.Duplicate(path.Index(i), p.ResourceName))
		}
		seen[p.ResourceName] = true
		faults = append(faults, oneOf(path, p.ResourceName, corev1.ResourceCPU, corev1.ResourceMemory)...)
		faults = append(faults, oneOf(path, p.RestartPolicy, corev1.NotRequired, corev1.RestartContainer)...)
		if r.pod.RestartPolicy == corev1.RestartPolicyNever && p.RestartPolicy != corev1.NotRequired {
			faults = append(faults, field.Invalid(path, p.RestartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
		}
	}
	return faults
}

// Kubernetes' limits on the rules by which a container starts again.
const (
	maxRestartRules     = 20
	maxRestartExitCodes = 255
)

func restartPolicy(path *field.Path, policy *corev1.ContainerRestartPolicy, rules []corev1.ContainerRestartRule) field.ErrorList {
	var faults field.ErrorList
	switch at := path.Child("restartPolicy"); {
	case policy == nil && len(rules) == 0:
		return nil
	case policy == nil:
		faults = append(faults, field.Required(at, "must specify restartPolicy when restart rules are used"))
	default:
		faults = append(faults, supported(at, *policy, corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)...)
	}
	list := path.Child("restartPolicyRules")
	if len(rules) > maxRestartRules {
		faults = append(faults, field.TooMany(list, len(rules), maxRestartRules))
	}
	for i, rule := range rules {
		at := list.Index(i)
		faults = append(faults, supported(at.Child("action"), rule.Action, corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers)...)
		if rule.ExitCodes == nil {
			faults = append(faults, field.Required(at.Child("exitCodes"), "must be specified"))
			continue
		}
		codes := at.Child("exitCodes")
		faults = append(faults, supported(codes.Child("operator"), rule.ExitCodes.Operator, corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn)...)
		if n := len(rule.ExitCodes.Values); n > maxRestartExitCodes {
			faults = append(faults, field.TooMany(codes.Child("values"), n, maxRestartExitCodes))
		}
	}
	return faults
}

func validatePorts(path *field.Path, ports []corev1.ContainerPort) field.ErrorList {
	var faults field.ErrorList
	seen := names{}
	for i, p := range ports {
		at := path.Index(i)
		if p.Name != "" {
			if bad := invalid(at.Child("name"), p.Name, validation.IsValidPortName(p.Name)); len(bad) > 0 {
				faults = append(faults, bad...)
			} else {
				faults = append(faults, seen.add(at.Child("name"), p.Name)...)
			}
		}
		if p.ContainerPort == 0 {
			faults = append(faults, field.Required(at.Child("containerPort"), ""))
		} else {
			faults = append(faults, portNumber(at.Child("containerPort"), p.ContainerPort)...)
		}
		if p.HostPort != 0 {
			faults = append(faults, portNumber(at.Child("hostPort"), p.HostPort)...)
		}
		faults = append(faults, protocol(at.Child("protocol"), p.Protocol)...)
	}
	return faults
}

func protocol(path *field.Path, p corev1.Protocol) field.ErrorList {
	return oneOf(path, p, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)
}

// hostPorts finds host ports that are asked for twice.
func hostPorts(path *field.Path, ports []corev1.ContainerPort, seen names) field.ErrorList {
	var faults field.ErrorList
	for i, p := range ports {
		if p.HostPort != 0 {
			faults = append(faults, seen.add(path.Index(i).Child("hostPort"), fmt.Sprintf("%s/%s/%d", p.Protocol, p.HostIP, p.HostPort))...)
		}
	}
	return faults
}
