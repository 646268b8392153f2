package registry

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/node/util/sysctl"
)

// validatePodSecurity judges what a pod as a whole may be.
func validatePodSecurity(path *field.Path, s *corev1.PodSpec) field.ErrorList {
	c := s.SecurityContext
	if c == nil {
		return nil
	}
	faults := groupID(path.Child("fsGroup"), c.FSGroup)
	faults = append(faults, userID(path.Child("runAsUser"), c.RunAsUser)...)
	faults = append(faults, groupID(path.Child("runAsGroup"), c.RunAsGroup)...)
	for i := range c.SupplementalGroups {
		faults = append(faults, groupID(path.Child("supplementalGroups").Index(i), &c.SupplementalGroups[i])...)
	}
	faults = append(faults, sysctls(path.Child("sysctls"), s)...)
	if p := c.FSGroupChangePolicy; p != nil {
		faults = append(faults, supported(path.Child("fsGroupChangePolicy"), *p, corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch)...)
	}
	faults = append(faults, seccomp(path.Child("seccompProfile"), c.SeccompProfile)...)
	faults = append(faults, windowsOptions(path.Child("windowsOptions"), c.WindowsOptions)...)
	faults = append(faults, appArmor(path.Child("appArmorProfile"), c.AppArmorProfile)...)
	if p := c.SupplementalGroupsPolicy; p != nil {
		faults = append(faults, supported(path.Child("supplementalGroupsPolicy"), *p, corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)...)
	}
	if p := c.SELinuxChangePolicy; p != nil {
		faults = append(faults, supported(path.Child("seLinuxChangePolicy"), *p, corev1.SELinuxChangePolicyMountOption, corev1.SELinuxChangePolicyRecursive)...)
	}
	return faults
}

func userID(path *field.Path, id *int64) field.ErrorList {
	if id == nil {
		return nil
	}
	return invalid(path, *id, validation.IsValidUserID(*id))
}

func groupID(path *field.Path, id *int64) field.ErrorList {
	if id == nil {
		return nil
	}
	return invalid(path, *id, validation.IsValidGroupID(*id))
}

// sysctlName has parts between dots or slashes.
var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)

const maxSysctlName = 253

// sysctls of the kernel that a pod has for itself: who shares a namespace with the host cannot change it there.
func sysctls(path *field.Path, s *corev1.PodSpec) field.ErrorList {
	var faults field.ErrorList
	seen := map[string]bool{}
	for i, ctl := range s.SecurityContext.Sysctls {
		at := path.Index(i).Child("name")
		switch {
		case ctl.Name == "":
			faults = append(faults, field.Required(at, ""))
		case len(ctl.Name) > maxSysctlName || !sysctlName.MatchString(ctl.Name):
			faults = append(faults, field.Invalid(at, ctl.Name, fmt.Sprintf("must have at most %d characters and match regex %s", maxSysctlName, sysctlName)))
		case seen[ctl.Name]:
			faults = append(faults, field.Duplicate(at, ctl.Name))
		}
		seen[ctl.Name] = true
		switch namespace, _, _ := sysctl.GetNamespace(ctl.Name); {
		case s.HostNetwork && namespace == sysctl.NetNamespace:
			faults = append(faults, field.Invalid(at, ctl.Name, "may not be specified when 'hostNetwork' is true"))
		case s.HostIPC && namespace == sysctl.IPCNamespace:
			faults = append(faults, field.Invalid(at, ctl.Name, "may not be specified when 'hostIPC' is true"))
		}
	}
	return faults
}

func seccomp(path *field.Path, p *corev1.SeccompProfile) field.ErrorList {
	if p == nil {
		return nil
	}
	var faults field.ErrorList
	if p.Type == "" {
		faults = append(faults, field.Required(path.Child("type"), "type is required when seccompProfile is set"))
	} else {
		faults = append(faults, oneOf(path.Child("type"), p.Type, corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)...)
	}
	local := path.Child("localhostProfile")
	switch {
	case p.Type != corev1.SeccompProfileTypeLocalhost && p.LocalhostProfile != nil:
		faults = append(faults, field.Invalid(local, shown(p), "can only be set when seccomp type is Localhost"))
	case p.Type == corev1.SeccompProfileTypeLocalhost && p.LocalhostProfile == nil:
		faults = append(faults, field.Required(local, "must be set when seccomp type is Localhost"))
	case p.Type == corev1.SeccompProfileTypeLocalhost:
		faults = append(faults, descendingPath(local, *p.LocalhostProfile)...)
	}
	return faults
}

// maxProfileName is the longest path on Linux.
const maxProfileName = 4095

func appArmor(path *field.Path, p *corev1.AppArmorProfile) field.ErrorList {
	if p == nil {
		return nil
	}
	kind, local := path.Child("type"), path.Child("localhostProfile")
	switch {
	case p.Type == "":
		return field.ErrorList{field.Required(kind, "type is required when appArmorProfile is set")}
	case p.Type != corev1.AppArmorProfileTypeLocalhost:
		faults := oneOf(kind, p.Type, corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined)
		if len(faults) == 0 && p.LocalhostProfile != nil {
			faults = append(faults, field.Invalid(local, *p.LocalhostProfile, "can only be set when AppArmor type is Localhost"))
		}
		return faults
	case p.LocalhostProfile == nil || *p.LocalhostProfile == "":
		return field.ErrorList{field.Required(local, "must be set when AppArmor type is Localhost")}
	}
	var faults field.ErrorList
	if name := *p.LocalhostProfile; strings.TrimSpace(name) != name {
		faults = append(faults, field.Invalid(local, name, "must not be padded with whitespace"))
	}
	if len(*p.LocalhostProfile) > maxProfileName {
		faults = append(faults, field.TooLong(local, "", maxProfileName))
	}
	return faults
}

// validateContainerSecurity. hostUsers of the pod: nil and true mean the users of the host.
func validateContainerSecurity(path *field.Path, c *corev1.SecurityContext, hostUsers *bool) field.ErrorList {
	if c == nil {
		return nil
	}
	faults := userID(path.Child("runAsUser"), c.RunAsUser)
	faults = append(faults, groupID(path.Child("runAsGroup"), c.RunAsGroup)...)
	if c.ProcMount != nil {
		faults = append(faults, supported(path.Child("procMount"), *c.ProcMount, corev1.DefaultProcMount, corev1.UnmaskedProcMount)...)
		if *c.ProcMount == corev1.UnmaskedProcMount && (hostUsers == nil || *hostUsers) {
			faults = append(faults, field.Invalid(path.Child("procMount"), *c.ProcMount, "`hostUsers` must be false to use `Unmasked`"))
		}
	}
	faults = append(faults, seccomp(path.Child("seccompProfile"), c.SeccompProfile)...)
	if c.AllowPrivilegeEscalation != nil && !*c.AllowPrivilegeEscalation {
		faults = append(faults, escalation(path, c)...)
	}
	faults = append(faults, windowsOptions(path.Child("windowsOptions"), c.WindowsOptions)...)
	return append(faults, appArmor(path.Child("appArmorProfile"), c.AppArmorProfile)...)
}

// escalation: who has every privilege already cannot be kept from gaining more.
func escalation(path *field.Path, c *corev1.SecurityContext) field.ErrorList {
	var faults field.ErrorList
	if isTrue(c.Privileged) {
		faults = append(faults, field.Invalid(path, shown(c), "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
	}
	if c.Capabilities == nil {
		return faults
	}
	for _, added := range c.Capabilities.Add {
		if added == "CAP_SYS_ADMIN" {
			faults = append(faults, field.Invalid(path, shown(c), "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"))
		}
	}
	return faults
}

// validateHostUsers: a pod with users of its own shares nothing with the host that belongs to the host's users.
func validateHostUsers(path *field.Path, s *corev1.PodSpec) field.ErrorList {
	if s.HostUsers == nil || *s.HostUsers {
		return nil
	}
	const detail = "when `hostUsers` is false"
	faults := forbidden(path, detail, part{"hostNetwork", s.HostNetwork}, part{"HostPID", s.HostPID}, part{"HostIPC", s.HostIPC})
	visitContainers(path, s, func(path *field.Path, c *corev1.Container) {
		faults = append(faults, forbidden(path, detail, part{"volumeDevices", len(c.VolumeDevices) > 0})...)
	})
	return faults
}
