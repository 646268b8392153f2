package registry

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

func discoveryRows() []*Resource {
	r := newRow[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](discoveryv1.SchemeGroupVersion, "endpointslices", "EndpointSlice")
	r.Strategy = Strategy{AllowCreateOnUpdate: true, Default: defaulter(defaultEndpointSlice)}
	r.Columns, r.Row = columns([]string{"Name", "AddressType", "Ports", "Endpoints", "Age"}), cells(endpointSliceRow)
	return []*Resource{r}
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
