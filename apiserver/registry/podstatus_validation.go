package registry

import (
	"context"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// validatePodStatus judges what the node agent or the scheduler reports.
func validatePodStatus(_ context.Context, obj, old runtime.Object) field.ErrorList {
	p, was := obj.(*corev1.Pod), old.(*corev1.Pod)
	annotations := field.NewPath("metadata", "annotations")
	faults := podAnnotationUpdates(annotations, p.Annotations, was.Annotations)
	faults = append(faults, podAnnotations(annotations, p.Annotations, &p.Spec)...)
	faults = append(faults, podConditions(statusPath.Child("conditions"), p.Status.Conditions)...)
	faults = append(faults, nominatedNode(statusPath.Child("nominatedNodeName"), p, was)...)
	if p.Status.ObservedGeneration < 0 {
		faults = append(faults, field.Invalid(statusPath.Child("observedGeneration"), p.Status.ObservedGeneration, "must be a non-negative integer"))
	}
	faults = append(faults, immutable(statusPath.Child("qosClass"), p.Status.QOSClass, was.Status.QOSClass)...)
	faults = append(faults, containerTransitions(p, was)...)
	faults = append(faults, claimStatuses(statusPath.Child("resourceClaimStatuses"), p)...)
	faults = append(faults, podAddresses(p, was)...)
	return append(faults, containerUsers(p)...)
}

func podConditions(path *field.Path, conditions []corev1.PodCondition) field.ErrorList {
	var faults field.ErrorList
	for i, c := range conditions {
		if c.ObservedGeneration < 0 {
			faults = append(faults, field.Invalid(path.Index(i).Child("observedGeneration"), c.ObservedGeneration, "must be a non-negative integer"))
		}
		faults = append(faults, qualifiedName(path.Index(i).Child("Type"), string(c.Type))...) // the path that Kubernetes gives
	}
	return faults
}

// nominatedNode: room is kept on a node for a pod that has none yet.
func nominatedNode(path *field.Path, p, was *corev1.Pod) field.ErrorList {
	name := p.Status.NominatedNodeName
	if name == "" || name == was.Status.NominatedNodeName {
		return nil
	}
	faults := invalid(path, name, apivalidation.NameIsDNSSubdomain(name, false))
	if was.Spec.NodeName != "" {
		faults = append(faults, field.Forbidden(path, "may not be set on pods that are already bound to a node"))
	}
	return faults
}

// containerTransitions: a container that has ended and is not to be started again stays as it ended.
func containerTransitions(p, was *corev1.Pod) field.ErrorList {
	spec := &was.Spec
	var faults field.ErrorList
	look := func(child string, now, before []corev1.ContainerStatus, mayRestart func(name string, exitCode int32) bool) {
		for i, b := range before {
			if b.State.Terminated == nil {
				continue
			}
			j := slices.IndexFunc(now, func(s corev1.ContainerStatus) bool { return s.Name == b.Name })
			if j >= 0 && now[j].State.Terminated == nil && !mayRestart(b.Name, b.State.Terminated.ExitCode) {
				faults = append(faults, field.Forbidden(statusPath.Child(child).Index(i).Child("state"), "may not be transitioned to non-terminated state"))
			}
		}
	}
	among := func(containers []corev1.Container) func(string, int32) bool {
		return func(name string, exitCode int32) bool {
			i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
			return i >= 0 && restarts(&containers[i], spec.RestartPolicy, exitCode)
		}
	}
	if !slices.ContainsFunc(everyContainer(spec), restartsAll) {
		look("containerStatuses", p.Status.ContainerStatuses, was.Status.ContainerStatuses, among(spec.Containers))
		look("initContainerStatuses", p.Status.InitContainerStatuses, was.Status.InitContainerStatuses, among(spec.InitContainers))
	}
	look("ephemeralContainerStatuses", p.Status.EphemeralContainerStatuses, was.Status.EphemeralContainerStatuses, func(string, int32) bool { return false })
	return faults
}

// restartsAll: a container may have a rule that starts all of the pod anew.
func restartsAll(c *corev1.Container) bool {
	return slices.ContainsFunc(c.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool {
		return r.Action == corev1.ContainerRestartRuleActionRestartAllContainers
	})
}

// restarts says whether a container is started again: by its rules, else by its own policy, else by the pod's.
func restarts(c *corev1.Container, ofPod corev1.RestartPolicy, exitCode int32) bool {
	for _, r := range c.RestartPolicyRules {
		if r.ExitCodes == nil {
			continue
		}
		listed := slices.Contains(r.ExitCodes.Values, exitCode)
		if listed == (r.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
			return true
		}
	}
	policy := string(ofPod)
	if c.RestartPolicy != nil {
		policy = string(*c.RestartPolicy)
	}
	switch policy {
	case string(corev1.RestartPolicyAlways):
		return true
	case string(corev1.RestartPolicyOnFailure):
		return exitCode != 0
	}
	return false
}

func claimStatuses(path *field.Path, p *corev1.Pod) field.ErrorList {
	var faults field.ErrorList
	seen := map[string]bool{}
	for i, s := range p.Status.ResourceClaimStatuses {
		at := path.Index(i)
		if !slices.ContainsFunc(p.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool { return c.Name == s.Name }) {
			faults = append(faults, field.Invalid(at.Child("name"), s.Name, "must match the name of an entry in `spec.resourceClaims`"))
		}
		if seen[s.Name] {
			faults = append(faults, field.Duplicate(at.Child("name"), s.Name))
		}
		seen[s.Name] = true
		if n := s.ResourceClaimName; n != nil {
			faults = append(faults, invalid(at.Child("resourceClaimName"), *n, apivalidation.NameIsDNSSubdomain(*n, false))...)
		}
	}
	return faults
}

// podAddresses: one of each family at most, and the first of each list is also in the field from before there were
// two families.
func podAddresses(p, was *corev1.Pod) field.ErrorList {
	s := &p.Status
	var ips, known, hosts, knownHosts []string
	for _, ip := range s.PodIPs {
		ips = append(ips, ip.IP)
	}
	for _, ip := range was.Status.PodIPs {
		known = append(known, ip.IP)
	}
	for _, ip := range s.HostIPs {
		hosts = append(hosts, ip.IP)
	}
	for _, ip := range was.Status.HostIPs {
		knownHosts = append(knownHosts, ip.IP)
	}
	path := statusPath.Child("podIPs")
	faults := addresses(path, ips, known, shown(s.PodIPs))
	switch {
	case (s.PodIP == "") != (len(ips) == 0):
		faults = append(faults, field.Invalid(path, shown(s.PodIPs), "podIP and podIPs must either both be set or both be unset"))
	case len(ips) > 0 && s.PodIP != ips[0]:
		faults = append(faults, field.Invalid(path.Index(0).Child("ip"), ips[0], "must be equal to `podIP`"))
	}
	path = statusPath.Child("hostIPs")
	if len(hosts) > 0 && s.HostIP != hosts[0] {
		faults = append(faults, field.Invalid(path.Index(0).Child("ip"), hosts[0], "must be equal to `hostIP`"))
	}
	return append(faults, addresses(path, hosts, knownHosts, shown(s.HostIPs))...)
}

func addresses(path *field.Path, ips, known []string, value any) field.ErrorList {
	var faults field.ErrorList
	for i, ip := range ips {
		if !slices.Contains(known, ip) {
			faults = append(faults, ipAddress(path.Index(i), ip)...)
		}
	}
	if len(ips) < 2 {
		return faults
	}
	if dual, err := netutils.IsDualStackIPStrings(ips); err != nil {
		faults = append(faults, field.InternalError(path, fmt.Errorf("failed to check for dual stack with error:%w", err)))
	} else if !dual || len(ips) > 2 {
		faults = append(faults, field.Invalid(path, value, "may specify no more than one IP for each IP family"))
	}
	return faults
}

// containerUsers: as whom containers run, as the node agent has found out.
func containerUsers(p *corev1.Pod) field.ErrorList {
	var faults field.ErrorList
	for _, list := range []struct {
		child    string
		statuses []corev1.ContainerStatus
	}{
		{"containerStatuses", p.Status.ContainerStatuses}, {"initContainerStatuses", p.Status.InitContainerStatuses},
		{"ephemeralContainerStatuses", p.Status.EphemeralContainerStatuses},
	} {
		for i, s := range list.statuses {
			if s.User == nil || s.User.Linux == nil {
				continue
			}
			user, path := s.User.Linux, statusPath.Child(list.child).Index(i).Child("user", "linux")
			if p.Spec.OS != nil && p.Spec.OS.Name == corev1.Windows {
				faults = append(faults, field.Forbidden(path, "cannot be set for a windows pod"))
				continue
			}
			if user.UID < 0 || user.UID > math.MaxUint32 {
				faults = append(faults, field.Invalid(path.Child("uid"), user.UID, fmt.Sprintf("must be between 0 and %d, inclusive", int64(math.MaxUint32))))
			}
			faults = append(faults, groupID(path.Child("gid"), &user.GID)...)
			for j := range user.SupplementalGroups {
				faults = append(faults, groupID(path.Child("supplementalGroups").Index(j), &user.SupplementalGroups[j])...)
			}
		}
	}
	return faults
}
