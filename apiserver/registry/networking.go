package registry

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func networkingRows() []*Resource {
	return []*Resource{ingressClasses(), ingresses(), ipAddresses(), networkPolicies(), serviceCIDRs()}
}

// ingresses. What is refused is in ingress_validation.go.
func ingresses() *Resource {
	r := newRow[networkingv1.Ingress, networkingv1.IngressList](networkingv1.SchemeGroupVersion, "ingresses", "Ingress")
	r.ShortNames, r.Prefix = []string{"ing"}, "/registry/ingress"
	r.Strategy = Strategy{Validate: validator(validateIngress), Warnings: ingressWarnings}
	r.Subresources = []Subresource{judged(statusOf(r, func(i, old *networkingv1.Ingress) { i.Spec = old.Spec }), validateIngressStatus)}
	r.Columns, r.Row = columns([]string{"Name", "Class", "Hosts", "Address", "Ports", "Age"}), cells(ingressRow)
	return r
}

func ingressRow(in *networkingv1.Ingress, now time.Time) []any {
	class, ports := none, "80"
	if in.Spec.IngressClassName != nil {
		class = *in.Spec.IngressClassName
	}
	if len(in.Spec.TLS) > 0 {
		ports = "80, 443"
	}
	var hosts, addresses []string
	for _, rule := range in.Spec.Rules {
		if rule.Host != "" {
			hosts = append(hosts, rule.Host)
		}
	}
	for _, a := range in.Status.LoadBalancer.Ingress {
		addresses = append(addresses, cmp.Or(a.IP, a.Hostname))
	}
	slices.Sort(addresses)
	return []any{in.Name, class, firstThree(hosts, "*"), strings.Join(addresses, ","), ports, age(&in.ObjectMeta, now)}
}

func ingressClasses() *Resource {
	r := newRow[networkingv1.IngressClass, networkingv1.IngressClassList](networkingv1.SchemeGroupVersion, "ingressclasses", "IngressClass")
	r.Namespaced = false
	r.Strategy = Strategy{
		Default: defaulter(func(c *networkingv1.IngressClass) {
			if c.Spec.Parameters != nil {
				setPointer(&c.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
			}
		}),
		Validate: validator(validateIngressClass),
		ValidateUpdate: updateValidator(func(c, old *networkingv1.IngressClass) field.ErrorList {
			return immutable(specPath.Child("controller"), c.Spec.Controller, old.Spec.Controller)
		}),
	}
	r.Columns = columns([]string{"Name", "Controller", "Parameters", "Age"})
	r.Row = cells(func(c *networkingv1.IngressClass, now time.Time) []any {
		name, parameters := c.Name, none
		if c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
			name += " (default)"
		}
		if p := c.Spec.Parameters; p != nil {
			parameters = p.Kind
			if p.APIGroup != nil {
				parameters += "." + *p.APIGroup
			}
			parameters += "/" + p.Name
		}
		return []any{name, c.Spec.Controller, parameters, age(&c.ObjectMeta, now)}
	})
	return r
}

func networkPolicies() *Resource {
	r := newRow[networkingv1.NetworkPolicy, networkingv1.NetworkPolicyList](networkingv1.SchemeGroupVersion, "networkpolicies", "NetworkPolicy")
	r.ShortNames = []string{"netpol"}
	r.Strategy = Strategy{Default: defaulter(defaultNetworkPolicy), Validate: validator(validateNetworkPolicy), Warnings: warnings(networkPolicyWarnings)}
	r.Columns = columns([]string{"Name", "Pod-Selector", "Age"})
	r.Row = cells(func(p *networkingv1.NetworkPolicy, now time.Time) []any {
		return []any{p.Name, metav1.FormatLabelSelector(&p.Spec.PodSelector), age(&p.ObjectMeta, now)}
	})
	return r
}

// defaultNetworkPolicy: a policy is about what comes in, and if it has rules for it about what goes out.
func defaultNetworkPolicy(p *networkingv1.NetworkPolicy) {
	if len(p.Spec.PolicyTypes) == 0 {
		p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(p.Spec.Egress) > 0 {
			p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	tcp := func(ports []networkingv1.NetworkPolicyPort) {
		for i := range ports {
			setPointer(&ports[i].Protocol, corev1.ProtocolTCP)
		}
	}
	for i := range p.Spec.Ingress {
		tcp(p.Spec.Ingress[i].Ports)
	}
	for i := range p.Spec.Egress {
		tcp(p.Spec.Egress[i].Ports)
	}
}

func validateNetworkPolicy(p *networkingv1.NetworkPolicy) field.ErrorList {
	faults := metavalidation.ValidateLabelSelector(&p.Spec.PodSelector, metavalidation.LabelSelectorValidationOptions{}, specPath.Child("podSelector"))
	if n := len(p.Spec.PolicyTypes); n > 2 {
		faults = append(faults, field.Invalid(specPath.Child("policyTypes"), p.Spec.PolicyTypes, "may not specify more than two policyTypes"))
	}
	for i, t := range p.Spec.PolicyTypes {
		faults = append(faults, supported(specPath.Child("policyTypes").Index(i), t, networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)...)
	}
	for i, rule := range p.Spec.Ingress {
		at := specPath.Child("ingress").Index(i)
		faults = append(faults, policyPorts(at.Child("ports"), rule.Ports)...)
		faults = append(faults, policyPeers(at.Child("from"), rule.From)...)
	}
	for i, rule := range p.Spec.Egress {
		at := specPath.Child("egress").Index(i)
		faults = append(faults, policyPorts(at.Child("ports"), rule.Ports)...)
		faults = append(faults, policyPeers(at.Child("to"), rule.To)...)
	}
	return faults
}

func policyPorts(path *field.Path, ports []networkingv1.NetworkPolicyPort) field.ErrorList {
	var faults field.ErrorList
	for i, p := range ports {
		at := path.Index(i)
		faults = append(faults, supported(at.Child("protocol"), *p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
		if p.Port != nil {
			faults = append(faults, portOrName(at.Child("port"), *p.Port)...)
		}
		if p.EndPort != nil {
			faults = append(faults, policyEndPort(at.Child("endPort"), p.Port, *p.EndPort)...)
		}
	}
	return faults
}

func policyEndPort(path *field.Path, port *intstr.IntOrString, last int32) field.ErrorList {
	switch {
	case port == nil:
		return field.ErrorList{field.Invalid(path, last, "may not be specified when `port` is not specified")}
	case port.Type != intstr.Int:
		return field.ErrorList{field.Invalid(path, last, "may not be specified when `port` is non-numeric")}
	case last < port.IntVal:
		return append(field.ErrorList{field.Invalid(path, last, "must be greater than or equal to `port`")}, portNumber(path, last)...)
	}
	return portNumber(path, last)
}

func policyPeers(path *field.Path, peers []networkingv1.NetworkPolicyPeer) field.ErrorList {
	var faults field.ErrorList
	for i, peer := range peers {
		at := path.Index(i)
		for child, s := range inOrder(map[string]*metav1.LabelSelector{"podSelector": peer.PodSelector, "namespaceSelector": peer.NamespaceSelector}) {
			faults = append(faults, metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, at.Child(child))...)
		}
		selects := peer.PodSelector != nil || peer.NamespaceSelector != nil
		switch {
		case !selects && peer.IPBlock == nil:
			faults = append(faults, field.Required(at, "must specify a peer"))
		case selects && peer.IPBlock != nil:
			faults = append(faults, field.Forbidden(at, "may not specify both ipBlock and another peer"))
		case peer.IPBlock != nil:
			faults = append(faults, ipBlock(at.Child("ipBlock"), peer.IPBlock)...)
		}
	}
	return faults
}

func ipBlock(path *field.Path, block *networkingv1.IPBlock) field.ErrorList {
	const notCIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
	if block.CIDR == "" {
		return required(path.Child("cidr"), block.CIDR)
	}
	whole, err := netip.ParsePrefix(block.CIDR)
	if err != nil {
		return field.ErrorList{field.Invalid(path.Child("cidr"), block.CIDR, notCIDR)}
	}
	var faults field.ErrorList
	for i, text := range block.Except {
		at := path.Child("except").Index(i)
		switch part, err := netip.ParsePrefix(text); {
		case err != nil:
			faults = append(faults, field.Invalid(at, text, notCIDR))
		case !whole.Contains(part.Addr()) || part.Bits() <= whole.Bits():
			faults = append(faults, field.Invalid(at, text, "must be a strict subset of `cidr`"))
		}
	}
	return faults
}
