package registry

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What the resolver of the C library reads.
const (
	maxNameServers       = 3
	maxSearches          = 32
	maxSearchCharacters  = 2048
	hostNameLimitOfLinux = 64
)

// validateDNS: a resolver reads three name servers and a short search list.
func validateDNS(path *field.Path, s *corev1.PodSpec) field.ErrorList {
	c := s.DNSConfig
	servers, searches := path.Child("nameservers"), path.Child("searches")
	switch {
	case s.DNSPolicy == corev1.DNSNone && c == nil:
		return field.ErrorList{field.Required(path, "must provide `dnsConfig` when `dnsPolicy` is None")}
	case s.DNSPolicy == corev1.DNSNone && len(c.Nameservers) == 0:
		return field.ErrorList{field.Required(servers, "must provide at least one DNS nameserver when `dnsPolicy` is None")}
	case c == nil:
		return nil
	}
	var faults field.ErrorList
	if len(c.Nameservers) > maxNameServers {
		faults = append(faults, field.Invalid(servers, c.Nameservers, fmt.Sprintf("must not have more than %d nameservers", maxNameServers)))
	}
	for i, ns := range c.Nameservers {
		faults = append(faults, ipAddress(servers.Index(i), ns)...)
	}
	if len(c.Searches) > maxSearches {
		faults = append(faults, field.Invalid(searches, c.Searches, fmt.Sprintf("must not have more than %d search paths", maxSearches)))
	}
	if len(strings.Join(c.Searches, " ")) > maxSearchCharacters {
		faults = append(faults, field.Invalid(searches, c.Searches, fmt.Sprintf("must not have more than %d characters (including spaces) in the search list", maxSearchCharacters)))
	}
	for i, domain := range c.Searches {
		if domain != "." {
			domain = strings.TrimSuffix(domain, ".")
			faults = append(faults, invalid(searches.Index(i), domain, validation.IsDNS1123SubdomainWithUnderscore(domain))...)
		}
	}
	for i, option := range c.Options {
		if option.Name == "" {
			faults = append(faults, field.Required(path.Child("options").Index(i), "must not be empty"))
		}
	}
	return faults
}

func ipAddress(path *field.Path, ip string) field.ErrorList {
	return validation.IsValidIPForLegacyField(path, ip, true, nil)
}

// validateHostNameOverride: a host name that differs from what the cluster calls the pod.
func validateHostNameOverride(path *field.Path, s *corev1.PodSpec) field.ErrorList {
	name := s.HostnameOverride
	if name == nil {
		return nil
	}
	var faults field.ErrorList
	if isTrue(s.SetHostnameAsFQDN) {
		faults = append(faults, field.Forbidden(path, "may not be specified when setHostnameAsFQDN is true"))
	}
	if s.HostNetwork {
		faults = append(faults, field.Forbidden(path, "may not be specified when hostNetwork is true"))
	}
	if len(*name) > hostNameLimitOfLinux {
		faults = append(faults, field.TooLong(path, "", hostNameLimitOfLinux))
	}
	return append(faults, dnsSubdomain(path, *name)...)
}

func validateHostAliases(path *field.Path, aliases []corev1.HostAlias) field.ErrorList {
	var faults field.ErrorList
	for i, alias := range aliases {
		faults = append(faults, ipAddress(path.Index(i).Child("ip"), alias.IP)...)
		for j, host := range alias.Hostnames {
			faults = append(faults, dnsSubdomain(path.Index(i).Child("hostnames").Index(j), host)...)
		}
	}
	return faults
}
