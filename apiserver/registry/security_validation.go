package registry

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validatePodSecurity judges what a pod as a whole may be.
// Not yet: SELinux, AppArmor and Windows options, the grammar of sysctl names.
func validatePodSecurity(path *field.Path, s *corev1.PodSpec) field.ErrorList {
	var faults field.ErrorList
	if s.HostPID && s.ShareProcessNamespace != nil && *s.ShareProcessNamespace {
		faults = append(faults, field.Invalid(path.Child("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled"))
	}
	c := s.SecurityContext
	if c == nil {
		return faults
	}
	at := path.Child("securityContext")
	faults = append(faults, userID(at.Child("runAsUser"), c.RunAsUser)...)
	faults = append(faults, groupID(at.Child("runAsGroup"), c.RunAsGroup)...)
	faults = append(faults, groupID(at.Child("fsGroup"), c.FSGroup)...)
	for i := range c.SupplementalGroups {
		faults = append(faults, groupID(at.Child("supplementalGroups").Index(i), &c.SupplementalGroups[i])...)
	}
	if p := c.FSGroupChangePolicy; p != nil {
		faults = append(faults, oneOf(at.Child("fsGroupChangePolicy"), *p, corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch)...)
	}
	faults = append(faults, seccomp(at.Child("seccompProfile"), c.SeccompProfile)...)
	seen := names{}
	for i, ctl := range c.Sysctls {
		name := at.Child("sysctls").Index(i).Child("name")
		faults = append(faults, required(name, ctl.Name)...)
		faults = append(faults, seen.add(name, ctl.Name)...)
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

func seccomp(path *field.Path, p *corev1.SeccompProfile) field.ErrorList {
	if p == nil {
		return nil
	}
	faults := oneOf(path.Child("type"), p.Type, corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)
	local := path.Child("localhostProfile")
	switch {
	case p.Type != corev1.SeccompProfileTypeLocalhost && p.LocalhostProfile != nil:
		faults = append(faults, field.Invalid(local, *p.LocalhostProfile, "can only be set when seccomp type is Localhost"))
	case p.Type == corev1.SeccompProfileTypeLocalhost && p.LocalhostProfile == nil:
		faults = append(faults, field.Required(local, "must be set when seccomp type is Localhost"))
	case p.Type == corev1.SeccompProfileTypeLocalhost:
		faults = append(faults, descendingPath(local, *p.LocalhostProfile)...)
	}
	return faults
}

func validateContainerSecurity(path *field.Path, c *corev1.SecurityContext) field.ErrorList {
	if c == nil {
		return nil
	}
	faults := userID(path.Child("runAsUser"), c.RunAsUser)
	faults = append(faults, groupID(path.Child("runAsGroup"), c.RunAsGroup)...)
	if c.ProcMount != nil {
		faults = append(faults, oneOf(path.Child("procMount"), *c.ProcMount, corev1.DefaultProcMount, corev1.UnmaskedProcMount)...)
	}
	faults = append(faults, seccomp(path.Child("seccompProfile"), c.SeccompProfile)...)
	if c.AllowPrivilegeEscalation == nil || *c.AllowPrivilegeEscalation {
		return faults
	}
	if isTrue(c.Privileged) {
		faults = append(faults, field.Invalid(path, "", "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
	}
	if c.Capabilities != nil {
		for _, added := range c.Capabilities.Add {
			if strings.TrimPrefix(string(added), "CAP_") == "SYS_ADMIN" {
				faults = append(faults, field.Invalid(path, "", "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"))
			}
		}
	}
	return faults
}

// validateDNS: a resolver reads three name servers and a short search list.
func validateDNS(path *field.Path, s *corev1.PodSpec) field.ErrorList {
	servers := path.Child("dnsConfig", "nameservers")
	c := s.DNSConfig
	if s.DNSPolicy == corev1.DNSNone && (c == nil || len(c.Nameservers) == 0) {
		return field.ErrorList{field.Required(servers, fmt.Sprintf("must provide at least one DNS nameserver when `dnsPolicy` is %s", corev1.DNSNone))}
	}
	if c == nil {
		return nil
	}
	var faults field.ErrorList
	if len(c.Nameservers) > 3 {
		faults = append(faults, field.Invalid(servers, c.Nameservers, "must not have more than 3 nameservers"))
	}
	for i, ns := range c.Nameservers {
		faults = append(faults, validation.IsValidIP(servers.Index(i), ns)...)
	}
	searches := path.Child("dnsConfig", "searches")
	if len(c.Searches) > 32 {
		faults = append(faults, field.Invalid(searches, c.Searches, "must not have more than 32 search paths"))
	}
	if len(strings.Join(c.Searches, " ")) > 2048 {
		faults = append(faults, field.Invalid(searches, c.Searches, "must not have more than 2048 characters (including spaces) in the search list"))
	}
	for i, option := range c.Options {
		if option.Name == "" {
			faults = append(faults, field.Required(path.Child("dnsConfig", "options").Index(i), "must not be empty"))
		}
	}
	return faults
}
