package registry

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxControllerLength is Kubernetes' limit on the name of an ingress controller.
const maxControllerLength = 250

func validateIngress(in *networkingv1.Ingress) field.ErrorList {
	var faults field.ErrorList
	if len(in.Spec.Rules) == 0 && in.Spec.DefaultBackend == nil {
		faults = append(faults, field.Invalid(specPath, in.Spec.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	if b := in.Spec.DefaultBackend; b != nil {
		faults = append(faults, ingressBackend(specPath.Child("defaultBackend"), b)...)
	}
	for i, rule := range in.Spec.Rules {
		at := specPath.Child("rules").Index(i)
		if rule.Host != "" {
			faults = append(faults, ingressHost(at.Child("host"), rule.Host, true)...)
		}
		if rule.HTTP == nil {
			continue
		}
		paths := at.Child("http", "paths")
		if len(rule.HTTP.Paths) == 0 {
			faults = append(faults, field.Required(paths, ""))
		}
		for j := range rule.HTTP.Paths {
			faults = append(faults, ingressPath(paths.Index(j), &rule.HTTP.Paths[j])...)
		}
	}
	for i, t := range in.Spec.TLS {
		at := specPath.Child("tls").Index(i)
		for j, host := range t.Hosts {
			faults = append(faults, ingressHost(at.Child("hosts").Index(j), host, false)...)
		}
		if t.SecretName != "" {
			faults = append(faults, dnsSubdomain(at.Child("secretName"), t.SecretName)...)
		}
	}
	if class := in.Spec.IngressClassName; class != nil {
		faults = append(faults, dnsSubdomain(specPath.Child("ingressClassName"), *class)...)
	}
	return faults
}

// ingressHost is a DNS name, whose first label may be "*".
func ingressHost(path *field.Path, host string, judgeIP bool) field.ErrorList {
	var faults field.ErrorList
	if _, err := netip.ParseAddr(host); err == nil && judgeIP {
		faults = append(faults, field.Invalid(path, host, "must be a DNS name, not an IP address"))
	}
	if strings.Contains(host, "*") {
		return append(faults, invalid(path, host, validation.IsWildcardDNS1123Subdomain(host))...)
	}
	return append(faults, dnsSubdomain(path, host)...)
}

func ingressPath(path *field.Path, p *networkingv1.HTTPIngressPath) field.ErrorList {
	if p.PathType == nil {
		return field.ErrorList{field.Required(path.Child("pathType"), "pathType must be specified")}
	}
	at := path.Child("path")
	faults := supported(path.Child("pathType"), *p.PathType, networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix)
	free := *p.PathType == networkingv1.PathTypeImplementationSpecific
	if (!free || p.Path != "") && !strings.HasPrefix(p.Path, "/") {
		faults = append(faults, field.Invalid(at, p.Path, "must be an absolute path"))
	}
	if !free { // what a URL parser would take apart
		for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(p.Path, part) {
				faults = append(faults, field.Invalid(at, p.Path, fmt.Sprintf("must not contain '%s'", part)))
			}
		}
		for _, end := range []string{"/..", "/."} {
			if strings.HasSuffix(p.Path, end) {
				faults = append(faults, field.Invalid(at, p.Path, fmt.Sprintf("cannot end with '%s'", end)))
			}
		}
	}
	return append(faults, ingressBackend(path.Child("backend"), &p.Backend)...)
}

func ingressBackend(path *field.Path, b *networkingv1.IngressBackend) field.ErrorList {
	switch {
	case b.Service != nil && b.Resource != nil:
		return field.ErrorList{field.Invalid(path, "", "cannot set both resource and service backends")}
	case b.Service == nil && b.Resource == nil:
		return field.ErrorList{field.Invalid(path, "", "resource or service backend is required")}
	case b.Resource != nil:
		return typedReference(path.Child("resource"), b.Resource)
	}
	at := path.Child("service")
	faults := dnsLabel(at.Child("name"), b.Service.Name)
	switch port := b.Service.Port; {
	case port.Name != "" && port.Number != 0:
		faults = append(faults, field.Invalid(path, "", "cannot set both port name & port number"))
	case port.Name != "":
		faults = append(faults, portOrName(at.Child("port", "name"), intstr.FromString(port.Name))...)
	case port.Number != 0:
		faults = append(faults, portNumber(at.Child("port", "number"), port.Number)...)
	default:
		faults = append(faults, field.Required(path, "port name or number is required"))
	}
	return faults
}

// typedReference names an object of any kind in the same namespace.
func typedReference(path *field.Path, ref *corev1.TypedLocalObjectReference) field.ErrorList {
	var faults field.ErrorList
	if ref.APIGroup != nil {
		faults = append(faults, dnsSubdomain(path.Child("apiGroup"), *ref.APIGroup)...)
	}
	for child, name := range inOrder(map[string]string{"kind": ref.Kind, "name": ref.Name}) {
		faults = append(faults, required(path.Child(child), name)...)
		if name != "" {
			faults = append(faults, invalid(path.Child(child), name, pathSegment(name, false))...)
		}
	}
	return faults
}

func validateIngressClass(c *networkingv1.IngressClass) field.ErrorList {
	var faults field.ErrorList
	at := specPath.Child("controller")
	if len(c.Spec.Controller) > maxControllerLength {
		faults = append(faults, field.TooLong(at, "", maxControllerLength))
	}
	faults = append(faults, validation.IsDomainPrefixedPath(at, c.Spec.Controller)...)
	p := c.Spec.Parameters
	if p == nil {
		return faults
	}
	at = specPath.Child("parameters")
	faults = append(faults, typedReference(at, &corev1.TypedLocalObjectReference{APIGroup: p.APIGroup, Kind: p.Kind, Name: p.Name})...)
	const cluster, namespace = networkingv1.IngressClassParametersReferenceScopeCluster, networkingv1.IngressClassParametersReferenceScopeNamespace
	if p.Scope == nil {
		return append(faults, field.Required(at.Child("scope"), ""))
	}
	faults = append(faults, supported(at.Child("scope"), *p.Scope, cluster, namespace)...)
	switch {
	case *p.Scope == namespace && p.Namespace == nil:
		faults = append(faults, field.Required(at.Child("namespace"), "`parameters.scope` is set to 'Namespace'"))
	case *p.Scope == namespace:
		faults = append(faults, invalid(at.Child("namespace"), *p.Namespace, validation.IsDNS1123Label(*p.Namespace))...)
	case *p.Scope == cluster && p.Namespace != nil:
		faults = append(faults, field.Forbidden(at.Child("namespace"), "`parameters.scope` is set to 'Cluster'"))
	}
	return faults
}

// validateIngressStatus judges where a controller says that the ingress is.
func validateIngressStatus(in *networkingv1.Ingress) field.ErrorList {
	var faults field.ErrorList
	for i, a := range in.Status.LoadBalancer.Ingress {
		at := field.NewPath("status", "loadBalancer", "ingress").Index(i)
		if a.IP != "" {
			faults = append(faults, validation.IsValidIP(at.Child("ip"), a.IP)...)
		}
		if a.Hostname != "" {
			faults = append(faults, dnsSubdomain(at.Child("hostname"), a.Hostname)...)
			if _, err := netip.ParseAddr(a.Hostname); err == nil {
				faults = append(faults, field.Invalid(at.Child("hostname"), a.Hostname, "must be a DNS name, not an IP address"))
			}
		}
	}
	return faults
}
