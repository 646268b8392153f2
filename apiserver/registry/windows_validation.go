package registry

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateOS judges what one operating system has and the other has not. No node of this project runs Windows, but
// an API server serves nodes of others too.
func validateOS(path *field.Path, s *corev1.PodSpec) field.ErrorList {
	if s.OS == nil {
		return nil
	}
	at := path.Child("os")
	if s.OS.Name == "" {
		return field.ErrorList{field.Required(at.Child("name"), "")}
	}
	if faults := supported(at, s.OS.Name, corev1.Linux, corev1.Windows); len(faults) > 0 {
		return faults
	}
	if s.OS.Name == corev1.Windows {
		return onlyOnLinux(path, s)
	}
	const detail = "windows options cannot be set for a linux pod"
	var faults field.ErrorList
	if c := s.SecurityContext; c != nil {
		faults = forbidden(path.Child("securityContext"), detail, part{"windowsOptions", c.WindowsOptions != nil})
	}
	visitContainers(path, s, func(path *field.Path, c *corev1.Container) {
		if sc := c.SecurityContext; sc != nil {
			faults = append(faults, forbidden(path.Child("securityContext"), detail, part{"windowsOptions", sc.WindowsOptions != nil})...)
		}
	})
	return faults
}

func onlyOnLinux(path *field.Path, s *corev1.PodSpec) field.ErrorList {
	const detail = "cannot be set for a windows pod"
	var faults field.ErrorList
	if c := s.SecurityContext; c != nil {
		faults = forbidden(path.Child("securityContext"), detail,
			part{"appArmorProfile", c.AppArmorProfile != nil}, part{"seLinuxOptions", c.SELinuxOptions != nil}, part{"seccompProfile", c.SeccompProfile != nil},
			part{"fsGroup", c.FSGroup != nil}, part{"fsGroupChangePolicy", c.FSGroupChangePolicy != nil}, part{"sysctls", len(c.Sysctls) > 0},
			part{"runAsUser", c.RunAsUser != nil}, part{"runAsGroup", c.RunAsGroup != nil}, part{"supplementalGroups", c.SupplementalGroups != nil},
			part{"supplementalGroupsPolicy", c.SupplementalGroupsPolicy != nil}, part{"seLinuxChangePolicy", c.SELinuxChangePolicy != nil})
	}
	faults = append(faults, forbidden(path, detail, part{"hostUsers", s.HostUsers != nil}, part{"hostPID", s.HostPID}, part{"hostIPC", s.HostIPC},
		part{"shareProcessNamespace", s.ShareProcessNamespace != nil})...)
	visitContainers(path, s, func(path *field.Path, c *corev1.Container) {
		sc := c.SecurityContext
		if sc == nil {
			return
		}
		faults = append(faults, forbidden(path.Child("securityContext"), detail,
			part{"appArmorProfile", sc.AppArmorProfile != nil}, part{"seLinuxOptions", sc.SELinuxOptions != nil}, part{"seccompProfile", sc.SeccompProfile != nil},
			part{"capabilities", sc.Capabilities != nil}, part{"readOnlyRootFilesystem", sc.ReadOnlyRootFilesystem != nil}, part{"privileged", sc.Privileged != nil},
			part{"allowPrivilegeEscalation", sc.AllowPrivilegeEscalation != nil}, part{"procMount", sc.ProcMount != nil},
			part{"runAsUser", sc.RunAsUser != nil}, part{"runAsGroup", sc.RunAsGroup != nil})...)
	})
	return faults
}

// validateHostProcess: containers that are processes of a Windows host are so all together, on its network.
func validateHostProcess(path *field.Path, s *corev1.PodSpec) field.ErrorList {
	var ofPod *bool
	if c := s.SecurityContext; c != nil && c.WindowsOptions != nil {
		ofPod = c.WindowsOptions.HostProcess
	}
	var faults field.ErrorList
	all, onHost := 0, 0
	visitContainers(path, s, func(path *field.Path, c *corev1.Container) {
		all++
		own := ofPod
		if sc := c.SecurityContext; sc != nil && sc.WindowsOptions != nil && sc.WindowsOptions.HostProcess != nil {
			own = sc.WindowsOptions.HostProcess
			if ofPod != nil && *ofPod != *own {
				faults = append(faults, field.Invalid(path.Child("securityContext", "windowsOptions", "hostProcess"), *own,
					fmt.Sprintf("pod hostProcess value must be identical if both are specified, was %v", *ofPod)))
			}
		}
		if isTrue(own) {
			onHost++
		}
	})
	if onHost == 0 {
		return faults
	}
	if onHost != all {
		faults = append(faults, field.Invalid(path, "", "If pod contains any hostProcess containers then all containers must be HostProcess containers"))
	}
	if !s.HostNetwork {
		faults = append(faults, field.Invalid(path.Child("hostNetwork"), false, "hostNetwork must be true if pod contains any hostProcess containers"))
	}
	return faults
}

// Windows' limits on names of users and their domains, and Kubernetes' on credentials.
const (
	maxCredentialKiB = 64
	maxUserDomain    = 256
	maxUserName      = 104
)

var (
	controlCharacters = regexp.MustCompile(`[[:cntrl:]]+`)
	netBIOSDomain     = regexp.MustCompile(`^[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}$`)
	dnsDomain         = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$`)
	notInUserNames    = regexp.MustCompile(`["/\\:;|=,\+\*\?<>@\[\]]`)
	onlyDots          = regexp.MustCompile(`^[\. ]+$`)
)

func windowsOptions(path *field.Path, o *corev1.WindowsSecurityContextOptions) field.ErrorList {
	if o == nil {
		return nil
	}
	var faults field.ErrorList
	if name := o.GMSACredentialSpecName; name != nil {
		faults = append(faults, dnsSubdomain(path.Child("gmsaCredentialSpecName"), *name)...)
	}
	if spec := o.GMSACredentialSpec; spec != nil && *spec == "" {
		faults = append(faults, field.Invalid(path.Child("gmsaCredentialSpec"), *spec, "gmsaCredentialSpec cannot be an empty string"))
	} else if spec != nil && len(*spec) > maxCredentialKiB<<10 {
		faults = append(faults, field.Invalid(path.Child("gmsaCredentialSpec"), *spec, fmt.Sprintf("gmsaCredentialSpec size must be under %d KiB", maxCredentialKiB)))
	}
	if o.RunAsUserName != nil {
		faults = append(faults, invalid(path.Child("runAsUserName"), *o.RunAsUserName, windowsUser(*o.RunAsUserName))...)
	}
	return faults
}

// windowsUser says what is wrong with DOMAIN\USER, or USER alone.
func windowsUser(name string) []string {
	domain, user, hasDomain := strings.Cut(name, `\`)
	if !hasDomain {
		domain, user = "", name
	}
	switch {
	case name == "":
		return []string{"runAsUserName cannot be an empty string"}
	case controlCharacters.MatchString(name):
		return []string{"runAsUserName cannot contain control characters"}
	case strings.Contains(user, `\`):
		return []string{"runAsUserName cannot contain more than one backslash"}
	}
	var out []string
	say := func(holds bool, message string) {
		if holds {
			out = append(out, message)
		}
	}
	say(len(domain) >= maxUserDomain, fmt.Sprintf("runAsUserName's Domain length must be under %d characters", maxUserDomain))
	say(hasDomain && !netBIOSDomain.MatchString(domain) && !dnsDomain.MatchString(domain), "runAsUserName's Domain doesn't match the NetBios nor the DNS format")
	say(user == "", "runAsUserName's User cannot be empty")
	say(len(user) > maxUserName, fmt.Sprintf("runAsUserName's User length must not be longer than %d characters", maxUserName))
	say(onlyDots.MatchString(user), "runAsUserName's User cannot contain only periods or spaces")
	say(notInUserNames.MatchString(user), `runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]`)
	return out
}
