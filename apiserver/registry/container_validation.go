package registry

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// containerRules is what the rules for one pod's containers share.
type containerRules struct {
	volumes map[string]*corev1.Volume
	grace   *int64 // of the pod, for sleeping hooks
	names   names  // of the containers seen so far, of every sort
}

func (r containerRules) regular(path *field.Path, containers []corev1.Container) field.ErrorList {
	if len(containers) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	var faults field.ErrorList
	ports := names{}
	for i := range containers {
		c, at := &containers[i], path.Index(i)
		faults = append(faults, r.common(at, c)...)
		faults = append(faults, r.names.add(at.Child("name"), c.Name)...)
		faults = append(faults, r.lifecycle(at, c)...)
		faults = append(faults, hostPorts(at.Child("ports"), c.Ports, ports)...)
	}
	return faults
}

// init containers run one after the other, so that their ports do not clash; those that restart
// always (sidecars) may have probes and hooks.
func (r containerRules) init(path *field.Path, containers []corev1.Container) field.ErrorList {
	var faults field.ErrorList
	for i := range containers {
		c, at := &containers[i], path.Index(i)
		faults = append(faults, r.common(at, c)...)
		faults = append(faults, r.names.add(at.Child("name"), c.Name)...)
		faults = append(faults, hostPorts(at.Child("ports"), c.Ports, names{})...)
		if c.RestartPolicy != nil {
			faults = append(faults, oneOf(at.Child("restartPolicy"), *c.RestartPolicy,
				corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyNever)...)
			if *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
				faults = append(faults, r.lifecycle(at, c)...)
				continue
			}
		}
		for child, set := range inOrder(map[string]bool{
			"lifecycle": c.Lifecycle != nil, "livenessProbe": c.LivenessProbe != nil,
			"readinessProbe": c.ReadinessProbe != nil, "startupProbe": c.StartupProbe != nil,
		}) {
			if set {
				faults = append(faults, field.Forbidden(at.Child(child), "may not be set for init containers without restartPolicy=Always"))
			}
		}
	}
	return faults
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
		faults = append(faults, r.names.add(at.Child("name"), c.Name)...)
		if e.TargetContainerName != "" && !targets[e.TargetContainerName] {
			faults = append(faults, field.NotFound(at.Child("targetContainerName"), e.TargetContainerName))
		}
		for child, set := range inOrder(map[string]bool{
			"ports": len(c.Ports) > 0, "lifecycle": c.Lifecycle != nil, "livenessProbe": c.LivenessProbe != nil,
			"readinessProbe": c.ReadinessProbe != nil, "startupProbe": c.StartupProbe != nil,
			"resources": len(c.Resources.Limits)+len(c.Resources.Requests)+len(c.Resources.Claims) > 0,
		}) {
			if set {
				faults = append(faults, field.Forbidden(at.Child(child), "cannot be set for an Ephemeral Container"))
			}
		}
		for j, m := range c.VolumeMounts {
			if m.SubPath != "" {
				faults = append(faults, field.Forbidden(at.Child("volumeMounts").Index(j).Child("subPath"), "cannot be set for an Ephemeral Container"))
			}
		}
	}
	return faults
}

func (r containerRules) common(path *field.Path, c *corev1.Container) field.ErrorList {
	faults := dnsLabel(path.Child("name"), c.Name)
	faults = append(faults, required(path.Child("image"), c.Image)...)
	faults = append(faults, oneOf(path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	faults = append(faults, oneOf(path.Child("imagePullPolicy"), c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	faults = append(faults, validatePorts(path.Child("ports"), c.Ports)...)
	faults = append(faults, validateEnv(path.Child("env"), c.Env)...)
	faults = append(faults, validateEnvFrom(path.Child("envFrom"), c.EnvFrom)...)
	faults = append(faults, r.mounts(path.Child("volumeMounts"), c)...)
	faults = append(faults, r.devices(path.Child("volumeDevices"), c)...)
	faults = append(faults, validateResources(path.Child("resources"), &c.Resources)...)
	faults = append(faults, validateContainerSecurity(path.Child("securityContext"), c.SecurityContext)...)
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

func (r containerRules) mounts(path *field.Path, c *corev1.Container) field.ErrorList {
	var faults field.ErrorList
	points := map[string]bool{}
	for i, m := range c.VolumeMounts {
		at := path.Index(i)
		faults = append(faults, required(at.Child("name"), m.Name)...)
		if r.volumes[m.Name] == nil {
			faults = append(faults, field.NotFound(at.Child("name"), m.Name))
		}
		faults = append(faults, required(at.Child("mountPath"), m.MountPath)...)
		if points[m.MountPath] {
			faults = append(faults, field.Invalid(at.Child("mountPath"), m.MountPath, "must be unique"))
		}
		points[m.MountPath] = true
		if m.SubPath != "" && m.SubPathExpr != "" {
			faults = append(faults, field.Invalid(at.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
		}
		faults = append(faults, descendingPath(path.Child("subPath"), m.SubPath)...)
		faults = append(faults, descendingPath(path.Child("subPathExpr"), m.SubPathExpr)...)
	}
	return faults
}

func (r containerRules) devices(path *field.Path, c *corev1.Container) field.ErrorList {
	var faults field.ErrorList
	for i, d := range c.VolumeDevices {
		at := path.Index(i)
		switch v := r.volumes[d.Name]; {
		case d.Name == "":
			faults = append(faults, field.Required(at.Child("name"), ""))
		case v == nil:
			faults = append(faults, field.NotFound(at.Child("name"), d.Name))
		case v.PersistentVolumeClaim == nil && v.Ephemeral == nil:
			faults = append(faults, field.Invalid(at.Child("name"), d.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"))
		}
		faults = append(faults, required(at.Child("devicePath"), d.DevicePath)...)
	}
	return faults
}

// descendingPath is relative and does not climb out with "..".
func descendingPath(path *field.Path, p string) field.ErrorList {
	var faults field.ErrorList
	if strings.HasPrefix(p, "/") {
		faults = append(faults, field.Invalid(path, p, "must be a relative path"))
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return append(faults, field.Invalid(path, p, "must not contain '..'"))
		}
	}
	return faults
}
