package registry

//lint:file-ignore SA1019 Endpoints are deprecated in favour of EndpointSlices, and still served

import (
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// endpoints are where the traffic of a Service goes, as old clients read it.
func endpoints() *Resource {
	r := newRow[corev1.Endpoints, corev1.EndpointsList](corev1.SchemeGroupVersion, "endpoints", "Endpoints")
	r.ShortNames = []string{"ep"}
	r.Prefix = "/registry/services/endpoints"
	r.Strategy = Strategy{
		NoGeneration:        true,
		AllowCreateOnUpdate: true,
		Default:             defaulter(defaultEndpoints),
		Validate:            validator(validateEndpoints),
		ValidateUpdate:      updateValidator(validateEndpointsUpdate),
		UpdateRulesOnly:     true,
	}
	r.Columns, r.Row = endpointsColumns, cells(endpointsRow)
	return r
}

func defaultEndpoints(e *corev1.Endpoints) {
	for i := range e.Subsets {
		for j := range e.Subsets[i].Ports {
			setDefault(&e.Subsets[i].Ports[j].Protocol, corev1.ProtocolTCP)
		}
	}
}

func validateEndpoints(e *corev1.Endpoints) field.ErrorList {
	var faults field.ErrorList
	for i, s := range e.Subsets {
		at := field.NewPath("subsets").Index(i)
		if len(s.Addresses)+len(s.NotReadyAddresses) == 0 {
			faults = append(faults, field.Required(at, "must specify `addresses` or `notReadyAddresses`"))
		}
		for child, list := range inOrder(map[string][]corev1.EndpointAddress{"addresses": s.Addresses, "notReadyAddresses": s.NotReadyAddresses}) {
			for j, a := range list {
				faults = append(faults, endpointAddress(at.Child(child).Index(j), &a)...)
			}
		}
		for j, p := range s.Ports {
			port := at.Child("ports").Index(j)
			if len(s.Ports) > 1 || p.Name != "" {
				faults = append(faults, dnsLabel(port.Child("name"), p.Name)...)
			}
			faults = append(faults, portNumber(port.Child("port"), p.Port)...)
			faults = append(faults, protocol(port.Child("protocol"), p.Protocol)...)
			if p.AppProtocol != nil {
				faults = append(faults, qualifiedName(port.Child("appProtocol"), *p.AppProtocol)...)
			}
		}
	}
	return faults
}

func endpointAddress(path *field.Path, a *corev1.EndpointAddress) field.ErrorList {
	faults := validation.IsValidIP(path.Child("ip"), a.IP)
	if len(faults) > 0 { // Kubernetes looks twice
		faults = append(faults, field.Invalid(path.Child("ip"), a.IP, "must be a valid IP address"))
	} else {
		faults = endpointIP(path.Child("ip"), a.IP)
	}
	if a.Hostname != "" {
		faults = append(faults, dnsLabel(path.Child("hostname"), a.Hostname)...)
	}
	if a.NodeName != nil {
		faults = append(faults, dnsSubdomain(path.Child("nodeName"), *a.NodeName)...)
	}
	return faults
}

// validateEndpointsUpdate leaves subsets in peace that are as they were: older rules were laxer.
func validateEndpointsUpdate(e, old *corev1.Endpoints) field.ErrorList {
	faults := validateEndpoints(e)
	if len(faults) > 0 && apiequality.Semantic.DeepEqual(e.Subsets, old.Subsets) {
		return nil
	}
	return faults
}

var endpointsColumns = columns([]string{"Name", "Endpoints", "Age"})

func endpointsRow(e *corev1.Endpoints, now time.Time) []any {
	var list []string
	for _, subset := range e.Subsets {
		for _, port := range subset.Ports {
			for _, address := range subset.Addresses {
				list = append(list, net.JoinHostPort(address.IP, strconv.Itoa(int(port.Port))))
			}
		}
		if len(subset.Ports) == 0 { // a headless Service may have none
			for _, address := range subset.Addresses {
				list = append(list, address.IP)
			}
		}
	}
	empty := "" // subsets without ready addresses
	if len(e.Subsets) == 0 {
		empty = none
	}
	return []any{e.Name, firstThree(list, empty), age(&e.ObjectMeta, now)}
}
