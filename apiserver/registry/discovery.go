package registry

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func discoveryRows() []*Resource {
	r := newRow[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](discoveryv1.SchemeGroupVersion, "endpointslices", "EndpointSlice")
	r.Strategy = Strategy{
		Default:        defaulter(defaultEndpointSlice),
		Validate:       validator(validateEndpointSlice),
		ValidateUpdate: updateValidator(validateEndpointSliceUpdate),
	}
	r.Columns, r.Row = columns([]string{"Name", "AddressType", "Ports", "Endpoints", "Age"}), cells(endpointSliceRow)
	return []*Resource{r}
}

// validateEndpointSlice. Not yet: hints.
func validateEndpointSlice(s *discoveryv1.EndpointSlice) field.ErrorList {
	faults := oneOf(field.NewPath("addressType"), s.AddressType, discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)
	ports, endpoints := field.NewPath("ports"), field.NewPath("endpoints")
	if len(s.Endpoints) > 1000 {
		return append(faults, field.TooMany(endpoints, len(s.Endpoints), 1000))
	}
	if len(s.Ports) > 20000 {
		return append(faults, field.TooMany(ports, len(s.Ports), 20000))
	}
	seen := names{}
	for i, p := range s.Ports {
		at := ports.Index(i)
		if *p.Name != "" {
			faults = append(faults, dnsLabel(at.Child("name"), *p.Name)...)
		}
		if seen[*p.Name] { // the empty name, too, may be there once
			faults = append(faults, field.Duplicate(at.Child("name"), *p.Name))
		}
		seen[*p.Name] = true
		faults = append(faults, protocol(at.Child("protocol"), *p.Protocol)...)
	}
	for i, e := range s.Endpoints {
		at := endpoints.Index(i)
		switch n := len(e.Addresses); {
		case n == 0:
			faults = append(faults, field.Required(at.Child("addresses"), "must contain at least 1 address"))
		case n > 100:
			faults = append(faults, field.TooMany(at.Child("addresses"), n, 100))
		}
		for j, address := range e.Addresses {
			faults = append(faults, sliceAddress(at.Child("addresses").Index(j), s.AddressType, address)...)
		}
	}
	return faults
}

func sliceAddress(path *field.Path, kind discoveryv1.AddressType, address string) field.ErrorList {
	if kind == discoveryv1.AddressTypeFQDN {
		return validation.IsFullyQualifiedDomainName(path, address)
	}
	faults := endpointIP(path, address)
	if len(faults) > 0 {
		return faults
	}
	if want := strings.Contains(address, ":"); want != (kind == discoveryv1.AddressTypeIPv6) {
		return field.ErrorList{field.Invalid(path, address, "must be an "+string(kind)+" address")}
	}
	return nil
}

func validateEndpointSliceUpdate(s, old *discoveryv1.EndpointSlice) field.ErrorList {
	return immutable(field.NewPath("addressType"), s.AddressType, old.AddressType)
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
