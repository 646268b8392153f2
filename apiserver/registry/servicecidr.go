package registry

import (
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// serviceCIDRs name ranges of cluster IPs. Services get their addresses from the server's own range first, and then from
// those that users add here, once a controller has found them ready (service_ranges.go).
func serviceCIDRs() *Resource {
	r := newRow[networkingv1.ServiceCIDR, networkingv1.ServiceCIDRList](networkingv1.SchemeGroupVersion, "servicecidrs", "ServiceCIDR")
	r.Namespaced = false
	r.Strategy = Strategy{
		NoGeneration:    true,
		Validate:        validator(validateServiceCIDR),
		ValidateUpdate:  updateValidator(validateServiceCIDRUpdate),
		UpdateRulesOnly: true,
	}
	r.Subresources = []Subresource{unjudged(sealed(statusOf(r, func(c, old *networkingv1.ServiceCIDR) { c.Spec = old.Spec })))}
	r.Columns = columns([]string{"Name", "CIDRs", "Age"})
	r.Row = cells(func(c *networkingv1.ServiceCIDR, now time.Time) []any {
		return []any{c.Name, strings.Join(c.Spec.CIDRs, ","), age(&c.ObjectMeta, now)}
	})
	return r
}

func validateServiceCIDR(c *networkingv1.ServiceCIDR) field.ErrorList {
	path := specPath.Child("cidrs")
	switch n := len(c.Spec.CIDRs); {
	case n == 0:
		return field.ErrorList{field.Required(path, "at least one CIDR required")}
	case n > 2:
		return field.ErrorList{field.Invalid(path, c.Spec, "may only hold up to 2 values")}
	}
	var faults field.ErrorList
	families := map[bool]bool{}
	for i, cidr := range c.Spec.CIDRs {
		faults = append(faults, validation.IsValidCIDR(path.Index(i), cidr)...)
		if p, err := netip.ParsePrefix(cidr); err == nil {
			families[p.Addr().Is4()] = true
		}
	}
	if len(faults) == 0 && len(families) < len(c.Spec.CIDRs) {
		faults = append(faults, field.Invalid(path, c.Spec.CIDRs, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"))
	}
	return faults
}

// validateServiceCIDRUpdate: a second family may join; nothing else changes.
func validateServiceCIDRUpdate(c, old *networkingv1.ServiceCIDR) field.ErrorList {
	const fixed = "field is immutable"
	path, now, was := specPath.Child("cidrs"), c.Spec.CIDRs, old.Spec.CIDRs
	grows := len(was) == 1 && len(now) == 2
	if len(now) != len(was) && !grows {
		return field.ErrorList{field.Invalid(path, now, fixed)}
	}
	var faults field.ErrorList
	for i := range was {
		if now[i] != was[i] {
			faults = append(faults, field.Invalid(path.Index(i), now[i], fixed))
		}
	}
	if grows {
		faults = append(faults, validateServiceCIDR(c)...)
	}
	return faults
}

// ipAddresses say whose a cluster IP is. Those of Services come and go with them (showClusterIP); one that a user makes
// keeps its address from being given out.
func ipAddresses() *Resource {
	r := newRow[networkingv1.IPAddress, networkingv1.IPAddressList](networkingv1.SchemeGroupVersion, "ipaddresses", "IPAddress")
	r.ShortNames, r.Namespaced = []string{"ip"}, false
	r.Strategy = Strategy{
		NoGeneration: true,
		GenerateName: func(prefix string) string { return prefix }, // letters would make no address of it
		ValidateName: func(name string, _ bool) []string {
			var out []string
			for _, fault := range validation.IsValidIP(nil, name) {
				out = append(out, fault.Detail)
			}
			return out
		},
		Validate: validator(func(a *networkingv1.IPAddress) field.ErrorList {
			return validateParent(specPath.Child("parentRef"), a.Spec.ParentRef)
		}),
		ValidateUpdate: updateValidator(func(a, old *networkingv1.IPAddress) field.ErrorList {
			return immutable(specPath.Child("parentRef"), a.Spec.ParentRef, old.Spec.ParentRef)
		}),
	}
	r.Columns = columns([]string{"Name", "ParentRef", "Age"})
	r.Row = cells(func(a *networkingv1.IPAddress, now time.Time) []any {
		parent := none
		if ref := a.Spec.ParentRef; ref != nil {
			parts := []string{strings.ToLower(strings.TrimSuffix(ref.Resource+"."+ref.Group, "."))}
			if ref.Namespace != "" {
				parts = append(parts, ref.Namespace)
			}
			parent = strings.Join(append(parts, ref.Name), "/")
		}
		return []any{a.Name, parent, age(&a.ObjectMeta, now)}
	})
	return r
}

func validateParent(path *field.Path, ref *networkingv1.ParentReference) field.ErrorList {
	if ref == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	var faults field.ErrorList
	if ref.Group != "" {
		faults = append(faults, dnsSubdomain(path.Child("group"), ref.Group)...)
	}
	for _, part := range [][2]string{{"resource", ref.Resource}, {"name", ref.Name}} {
		at, name := path.Child(part[0]), part[1]
		faults = append(faults, required(at, name)...)
		if name != "" {
			faults = append(faults, invalid(at, name, pathSegment(name, false))...)
		}
	}
	if ref.Namespace != "" {
		faults = append(faults, invalid(path.Child("namespace"), ref.Namespace, pathSegment(ref.Namespace, false))...)
	}
	return faults
}

// showClusterIP is the IPAddress of a Service's cluster IP, as Kubernetes' allocator makes it.
func showClusterIP(obj runtime.Object, claim string) (string, runtime.Object) {
	name, ok := strings.CutPrefix(claim, clusterIPClaims)
	ip, err := netip.ParseAddr(name)
	if !ok || err != nil {
		return "", nil
	}
	s := obj.(*corev1.Service)
	address := &networkingv1.IPAddress{
		TypeMeta: metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "IPAddress"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: uuid.NewUUID(), CreationTimestamp: metav1.NewTime(time.Now().UTC().Truncate(time.Second)),
			Labels: map[string]string{
				networkingv1.LabelIPAddressFamily: string(familyOf(ip)), networkingv1.LabelManagedBy: "ipallocator.k8s.io",
			},
		},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: s.Namespace, Name: s.Name}},
	}
	return "/registry/ipaddresses/" + name, address
}
