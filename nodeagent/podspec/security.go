package podspec

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Paths that a container with the default procMount does not see, or cannot write.
var (
	maskedPaths = []string{
		"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats",
		"/sys/devices/virtual/powercap", "/sys/firmware",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// ImageUser is the user that an image asks for: a number or a name, or neither (root).
type ImageUser struct {
	UID  *int64
	Name string
}

// securityContext merges the pod's and the container's security contexts; the container's wins.
func securityContext(pod *corev1.Pod, c *corev1.Container, user ImageUser) (*runtimeapi.LinuxContainerSecurityContext, error) {
	psc, sc := pod.Spec.SecurityContext, c.SecurityContext
	if psc == nil {
		psc = &corev1.PodSecurityContext{}
	}
	if sc == nil {
		sc = &corev1.SecurityContext{}
	}
	uid, gid := either(sc.RunAsUser, psc.RunAsUser), either(sc.RunAsGroup, psc.RunAsGroup)
	if nonRoot := either(sc.RunAsNonRoot, psc.RunAsNonRoot); isTrue(nonRoot) {
		if err := checkNonRoot(pod, c, uid, user); err != nil {
			return nil, err
		}
	}
	out := &runtimeapi.LinuxContainerSecurityContext{
		NamespaceOptions:   namespaceOptions(pod),
		Privileged:         isTrue(sc.Privileged),
		ReadonlyRootfs:     isTrue(sc.ReadOnlyRootFilesystem),
		NoNewPrivs:         sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation && !isTrue(sc.Privileged),
		RunAsUser:          int64Value(uid),
		RunAsGroup:         int64Value(gid),
		SupplementalGroups: supplementalGroups(psc),
		Seccomp:            seccomp(either(sc.SeccompProfile, psc.SeccompProfile)),
	}
	if psc.SupplementalGroupsPolicy != nil && *psc.SupplementalGroupsPolicy == corev1.SupplementalGroupsPolicyStrict {
		out.SupplementalGroupsPolicy = runtimeapi.SupplementalGroupsPolicy_Strict
	}
	if uid == nil && user.UID == nil && user.Name != "" {
		out.RunAsUsername = user.Name
	}
	if uid == nil && user.UID != nil {
		out.RunAsUser = int64Value(user.UID)
	}
	if out.RunAsGroup != nil && out.RunAsUser == nil && out.RunAsUsername == "" {
		out.RunAsUser = &runtimeapi.Int64Value{} // CRI: a group needs a user
	}
	if caps := sc.Capabilities; caps != nil {
		out.Capabilities = &runtimeapi.Capability{}
		for _, name := range caps.Add {
			out.Capabilities.AddCapabilities = append(out.Capabilities.AddCapabilities, string(name))
		}
		for _, name := range caps.Drop {
			out.Capabilities.DropCapabilities = append(out.Capabilities.DropCapabilities, string(name))
		}
	}
	unmasked := sc.ProcMount != nil && *sc.ProcMount == corev1.UnmaskedProcMount
	if !out.Privileged && !unmasked {
		out.MaskedPaths, out.ReadonlyPaths = slices.Clone(maskedPaths), slices.Clone(readonlyPaths)
	}
	return out, nil
}

func checkNonRoot(pod *corev1.Pod, c *corev1.Container, uid *int64, user ImageUser) error {
	where := fmt.Sprintf("(pod: %q, container: %s)", pod.Name+"_"+pod.Namespace+"("+string(pod.UID)+")", c.Name)
	switch {
	case uid != nil && *uid == 0:
		return fmt.Errorf("%w but its runAsUser is 0 (root) %s", ErrRunAsRoot, where)
	case uid != nil:
		return nil
	case user.UID != nil && *user.UID == 0, user.UID == nil && user.Name == "":
		return fmt.Errorf("%w and image will run as root %s", ErrRunAsRoot, where)
	case user.UID == nil:
		return fmt.Errorf("%w and image has non-numeric user (%s), cannot verify user is non-root %s", ErrRunAsRoot, user.Name, where)
	}
	return nil
}

func namespaceOptions(pod *corev1.Pod) *runtimeapi.NamespaceOption {
	o := &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}
	if isTrue(pod.Spec.ShareProcessNamespace) {
		o.Pid = runtimeapi.NamespaceMode_POD
	}
	if pod.Spec.HostPID {
		o.Pid = runtimeapi.NamespaceMode_NODE
	}
	if pod.Spec.HostNetwork {
		o.Network = runtimeapi.NamespaceMode_NODE
	}
	if pod.Spec.HostIPC {
		o.Ipc = runtimeapi.NamespaceMode_NODE
	}
	return o
}

// supplementalGroups are those asked for, and the fsGroup that owns the pod's volumes.
func supplementalGroups(psc *corev1.PodSecurityContext) []int64 {
	groups := slices.Clone(psc.SupplementalGroups)
	if psc.FSGroup != nil && !slices.Contains(groups, *psc.FSGroup) {
		groups = append(groups, *psc.FSGroup)
	}
	return groups
}

// seccomp is unconfined unless a profile is asked for, as in Kubernetes without seccompDefault.
func seccomp(p *corev1.SeccompProfile) *runtimeapi.SecurityProfile {
	if p == nil {
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	}
	switch p.Type {
	case corev1.SeccompProfileTypeRuntimeDefault:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
	case corev1.SeccompProfileTypeLocalhost:
		ref := ""
		if p.LocalhostProfile != nil {
			ref = *p.LocalhostProfile
		}
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: ref}
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
}

func either[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

func int64Value(v *int64) *runtimeapi.Int64Value {
	if v == nil {
		return nil
	}
	return &runtimeapi.Int64Value{Value: *v}
}
