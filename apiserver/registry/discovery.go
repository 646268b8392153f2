package registry

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func discoveryRows() []*Resource {
	r := newRow[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](discoveryv1.SchemeGroupVersion, "endpointslices", "EndpointSlice")
	r.Strategy = Strategy{
		Default: defaulter(defaultEndpointSlice),
		PrepareForUpdate: updatePreparer(func(s, old *discoveryv1.EndpointSlice) {
			if s.Generation == old.Generation && !maps.Equal(s.Labels, old.Labels) { // of a slice, labels count
				s.Generation++
			}
		}),
		Validate:        validator(validateEndpointSlice),
		ValidateUpdate:  updateValidator(validateEndpointSliceUpdate),
		UpdateRulesOnly: true,
	}
	r.Columns, r.Row = columns([]string{"Name", "AddressType", "Ports", "Endpoints", "Age"}), cells(endpointSliceRow)
	return []*Resource{r}
}

func validateEndpointSlice(s *discoveryv1.EndpointSlice) field.ErrorList {
	faults := oneOf(field.NewPath("addressType"), s.AddressType, discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)
	faults = append(faults, slicePorts(field.NewPath("ports"), s.Ports)...)
	return append(faults, sliceEndpoints(field.NewPath("endpoints"), s)...)
}

// validateEndpointSliceUpdate leaves endpoints in peace that are as they were: older rules were laxer.
func validateEndpointSliceUpdate(s, old *discoveryv1.EndpointSlice) field.ErrorList {
	faults := validateEndpointSlice(s)
	if len(faults) > 0 && apiequality.Semantic.DeepEqual(s.Endpoints, old.Endpoints) {
		faults = slices.DeleteFunc(faults, func(f *field.Error) bool { return strings.HasPrefix(f.Field, "endpoints") })
	}
	return append(faults, immutable(field.NewPath("addressType"), s.AddressType, old.AddressType)...)
}

func slicePorts(path *field.Path, ports []discoveryv1.EndpointPort) field.ErrorList {
	if len(ports) > 20000 {
		return field.ErrorList{field.TooMany(path, len(ports), 20000)}
	}
	var faults field.ErrorList
	seen := map[string]bool{}
	for i, p := range ports {
		at := path.Index(i)
		if *p.Name != "" {
			faults = append(faults, dnsLabel(at.Child("name"), *p.Name)...)
		}
		if seen[*p.Name] { // the empty name, too, may be there once
			faults = append(faults, field.Duplicate(at.Child("name"), *p.Name))
		}
		seen[*p.Name] = true
		faults = append(faults, supported(at.Child("protocol"), *p.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
		if p.AppProtocol != nil {
			faults = append(faults, qualifiedName(at.Child("appProtocol"), *p.AppProtocol)...)
		}
	}
	return faults
}

func sliceEndpoints(path *field.Path, s *discoveryv1.EndpointSlice) field.ErrorList {
	if len(s.Endpoints) > 1000 {
		return field.ErrorList{field.TooMany(path, len(s.Endpoints), 1000)}
	}
	var faults field.ErrorList
	for i, e := range s.Endpoints {
		at := path.Index(i)
		switch n := len(e.Addresses); {
		case n == 0:
			faults = append(faults, field.Required(at.Child("addresses"), "must contain at least 1 address"))
		case n > 100:
			faults = append(faults, field.TooMany(at.Child("addresses"), n, 100))
		}
		for j, address := range e.Addresses {
			faults = append(faults, sliceAddress(at.Child("addresses"), j, s.AddressType, address)...)
		}
		if e.NodeName != nil {
			faults = append(faults, dnsSubdomain(at.Child("nodeName"), *e.NodeName)...)
		}
		if n := len(e.DeprecatedTopology); n > 16 {
			faults = append(faults, field.TooMany(at.Child("deprecatedTopology"), n, 16))
		}
		faults = append(faults, metavalidation.ValidateLabels(e.DeprecatedTopology, at.Child("deprecatedTopology"))...)
		if e.Hostname != nil {
			faults = append(faults, invalid(at.Child("hostname"), *e.Hostname, validation.IsDNS1123Label(*e.Hostname))...)
		}
		if e.Hints != nil {
			faults = append(faults, sliceHints(at.Child("hints"), e.Hints)...)
		}
	}
	return faults
}

// sliceHints say for which zones and nodes an endpoint is meant: at most eight of each.
func sliceHints(path *field.Path, h *discoveryv1.EndpointHints) field.ErrorList {
	var zones, nodes []string
	for _, z := range h.ForZones {
		zones = append(zones, z.Name)
	}
	for _, n := range h.ForNodes {
		nodes = append(nodes, n.Name)
	}
	faults := hinted(path.Child("forZones"), zones, validation.IsValidLabelValue)
	return append(faults, hinted(path.Child("forNodes"), nodes, validation.IsDNS1123Subdomain)...)
}

func hinted(path *field.Path, list []string, judge func(string) []string) field.ErrorList {
	if len(list) > 8 {
		return field.ErrorList{field.TooMany(path, len(list), 8)}
	}
	var faults field.ErrorList
	seen := names{}
	for i, name := range list {
		at := path.Index(i).Child("name")
		faults = append(faults, seen.add(at, name)...)
		faults = append(faults, invalid(at, name, judge(name))...)
	}
	return faults
}

func sliceAddress(path *field.Path, i int, kind discoveryv1.AddressType, address string) field.ErrorList {
	at := path.Index(i)
	switch kind {
	case discoveryv1.AddressTypeFQDN:
		return validation.IsFullyQualifiedDomainName(at, address)
	case discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6:
	default:
		return nil
	}
	if faults := validation.IsValidIP(at, address); len(faults) > 0 {
		return faults
	}
	var faults field.ErrorList
	if v6 := strings.Contains(address, ":"); v6 != (kind == discoveryv1.AddressTypeIPv6) {
		faults = append(faults, field.Invalid(path, address, "must be an "+string(kind)+" address")) // no index, as in Kubernetes
	}
	return append(faults, endpointIP(at, address)...)
}

func endpointSliceRow(s *discoveryv1.EndpointSlice, now time.Time) []any {
	var ports, addresses []string
	for _, p := range s.Ports {
		switch {
		case p.Port != nil:
			ports = append(ports, strconv.Itoa(int(*p.Port)))
		case p.Name != nil:
			ports = append(ports, *p.Name)
		default:
			ports = append(ports, "*")
		}
	}
	for _, e := range s.Endpoints {
		addresses = append(addresses, e.Addresses...)
	}
	return []any{s.Name, string(s.AddressType), firstThree(ports, unset), firstThree(addresses, unset), age(&s.ObjectMeta, now)}
}

func defaultEndpointSlice(s *discoveryv1.EndpointSlice) {
	for i := range s.Ports {
		setPointer(&s.Ports[i].Name, "")
		setPointer(&s.Ports[i].Protocol, corev1.ProtocolTCP)
	}
}
