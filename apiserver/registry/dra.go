package registry

import (
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// deviceRows are those of resource.k8s.io: devices that drivers offer (slices) and pods ask for (claims).
// Their validation is declared (package validations). Nothing allocates yet.
func deviceRows() []*Resource {
	return []*Resource{deviceClasses(), deviceTaintRules(), resourceClaims(), resourceClaimTemplates(), resourceSlices()}
}

func deviceClasses() *Resource {
	r := newRow[resourcev1.DeviceClass, resourcev1.DeviceClassList](resourcev1.SchemeGroupVersion, "deviceclasses", "DeviceClass")
	r.Namespaced = false
	r.Strategy.ReturnDeleted = true
	r.Strategy.Validate = validator(func(c *resourcev1.DeviceClass) field.ErrorList {
		return deviceSelectors(specPath.Child("selectors"), c.Spec.Selectors)
	})
	// The rule for the name is a declared one, of which there is none for a prefix; the name made of it is judged.
	r.Strategy.ValidateName = func(name string, prefix bool) []string {
		if prefix {
			return nil
		}
		return content.IsDNS1123Subdomain(name)
	}
	r.Columns = columns([]string{"Name", "Age"})
	r.Row = cells(func(c *resourcev1.DeviceClass, now time.Time) []any { return []any{c.Name, age(&c.ObjectMeta, now)} })
	return r
}

// deviceTaintRules keep pods away from devices. A taint says since when it is there.
func deviceTaintRules() *Resource {
	r := newRow[resourcev1.DeviceTaintRule, resourcev1.DeviceTaintRuleList](resourcev1.SchemeGroupVersion, "devicetaintrules", "DeviceTaintRule")
	r.Namespaced = false
	since := func(t *resourcev1.DeviceTaint) {
		setPointer(&t.TimeAdded, metav1.Time{Time: time.Now().UTC().Truncate(time.Second)})
	}
	r.Strategy = Strategy{
		PrepareForCreate: preparer(func(t *resourcev1.DeviceTaintRule) { since(&t.Spec.Taint) }),
		PrepareForUpdate: updatePreparer(func(t, _ *resourcev1.DeviceTaintRule) { since(&t.Spec.Taint) }),
	}
	r.Subresources = []Subresource{unjudged(sealed(statusOf(r, func(t, old *resourcev1.DeviceTaintRule) { t.Spec = old.Spec })))}
	r.Columns = columns([]string{"Name", "Key", "Value", "Effect", "TimeAdded", "Age"})
	r.Row = cells(func(t *resourcev1.DeviceTaintRule, now time.Time) []any {
		added := unset
		if at := t.Spec.Taint.TimeAdded; at != nil {
			added = age(&metav1.ObjectMeta{CreationTimestamp: *at}, now)
		}
		return []any{t.Name, t.Spec.Taint.Key, t.Spec.Taint.Value, string(t.Spec.Taint.Effect), added, age(&t.ObjectMeta, now)}
	})
	return r
}

func resourceClaims() *Resource {
	r := newRow[resourcev1.ResourceClaim, resourcev1.ResourceClaimList](resourcev1.SchemeGroupVersion, "resourceclaims", "ResourceClaim")
	r.Strategy = Strategy{
		NoGeneration:  true,
		ReturnDeleted: true,
		Default:       defaulter(func(c *resourcev1.ResourceClaim) { defaultClaimRequests(c.Spec.Devices.Requests) }),
		Validate: validator(func(c *resourcev1.ResourceClaim) field.ErrorList {
			return deviceRequests(specPath.Child("devices", "requests"), c.Spec.Devices.Requests)
		}),
		UpdateRulesOnly: true,
		ValidateUpdate: updateValidator(func(c, old *resourcev1.ResourceClaim) field.ErrorList {
			return immutable(specPath, c.Spec, old.Spec)
		}),
	}
	r.Subresources = []Subresource{unjudged(sealed(statusOf(r, func(c, old *resourcev1.ResourceClaim) { c.Spec = old.Spec })))}
	r.Columns = columns([]string{"Name", "State", "Age"})
	r.Row = cells(func(c *resourcev1.ResourceClaim, now time.Time) []any {
		return []any{c.Name, claimState(c), age(&c.ObjectMeta, now)}
	})
	return r
}

// deviceRequests: each asks for one class of devices exactly, or for the first that is there of several.
func deviceRequests(path *field.Path, requests []resourcev1.DeviceRequest) field.ErrorList {
	var faults field.ErrorList
	for i, r := range requests {
		at := path.Index(i)
		faults = append(faults, invalid(at.Child("name"), r.Name, validation.IsDNS1123Label(r.Name))...)
		switch {
		case r.Exactly == nil && len(r.FirstAvailable) == 0:
			faults = append(faults, field.Required(at, "exactly one of `exactly` or `firstAvailable` is required"))
		case r.Exactly == nil:
		case r.Exactly.DeviceClassName == "":
			faults = append(faults, required(at.Child("exactly", "deviceClassName"), "")...)
		default:
			faults = append(faults, dnsSubdomain(at.Child("exactly", "deviceClassName"), r.Exactly.DeviceClassName)...)
		}
		if r.Exactly != nil {
			faults = append(faults, deviceSelectors(at.Child("exactly", "selectors"), r.Exactly.Selectors)...)
		}
		for j, alternative := range r.FirstAvailable {
			faults = append(faults, deviceSelectors(at.Child("firstAvailable").Index(j).Child("selectors"), alternative.Selectors)...)
		}
	}
	return faults
}

func claimState(c *resourcev1.ResourceClaim) string {
	var states []string
	if c.DeletionTimestamp != nil {
		states = append(states, "deleted")
	}
	switch {
	case c.Status.Allocation != nil:
		states = append(states, "allocated")
		if len(c.Status.ReservedFor) > 0 {
			states = append(states, "reserved")
		}
	case c.DeletionTimestamp == nil:
		states = append(states, "pending")
	}
	return strings.Join(states, ",")
}

// defaultClaimRequests: a request is for one device unless it says otherwise.
func defaultClaimRequests(requests []resourcev1.DeviceRequest) {
	fill := func(mode *resourcev1.DeviceAllocationMode, count *int64) {
		setDefault(mode, resourcev1.DeviceAllocationModeExactCount)
		if *mode == resourcev1.DeviceAllocationModeExactCount {
			setDefault(count, 1)
		}
	}
	for i := range requests {
		if e := requests[i].Exactly; e != nil {
			fill(&e.AllocationMode, &e.Count)
			defaultDeviceTolerations(e.Tolerations)
		}
		for j := range requests[i].FirstAvailable {
			alternative := &requests[i].FirstAvailable[j]
			fill(&alternative.AllocationMode, &alternative.Count)
			defaultDeviceTolerations(alternative.Tolerations)
		}
	}
}

func defaultDeviceTolerations(list []resourcev1.DeviceToleration) {
	for i := range list {
		setDefault(&list[i].Operator, resourcev1.DeviceTolerationOpEqual)
	}
}

func resourceClaimTemplates() *Resource {
	r := newRow[resourcev1.ResourceClaimTemplate, resourcev1.ResourceClaimTemplateList](resourcev1.SchemeGroupVersion, "resourceclaimtemplates", "ResourceClaimTemplate")
	r.Strategy = Strategy{
		NoGeneration:  true,
		ReturnDeleted: true,
		Default:       defaulter(func(t *resourcev1.ResourceClaimTemplate) { defaultClaimRequests(t.Spec.Spec.Devices.Requests) }),
		ValidateUpdate: updateValidator(func(t, old *resourcev1.ResourceClaimTemplate) field.ErrorList {
			return immutable(specPath, t.Spec, old.Spec)
		}),
	}
	r.Columns = columns([]string{"Name", "Age"})
	r.Row = cells(func(t *resourcev1.ResourceClaimTemplate, now time.Time) []any {
		return []any{t.Name, age(&t.ObjectMeta, now)}
	})
	return r
}

func resourceSlices() *Resource {
	r := newRow[resourcev1.ResourceSlice, resourcev1.ResourceSliceList](resourcev1.SchemeGroupVersion, "resourceslices", "ResourceSlice")
	r.Namespaced = false
	node := func(s *resourcev1.ResourceSlice) string {
		if s.Spec.NodeName == nil {
			return ""
		}
		return *s.Spec.NodeName
	}
	r.Strategy = Strategy{ReturnDeleted: true}
	r.Fields = fieldSet(func(s *resourcev1.ResourceSlice) fields.Set {
		return fields.Set{"spec.nodeName": node(s), "spec.driver": s.Spec.Driver}
	})
	r.Columns = columns([]string{"Name", "Node", "Driver", "Pool", "Age"})
	r.Row = cells(func(s *resourcev1.ResourceSlice, now time.Time) []any {
		return []any{s.Name, node(s), s.Spec.Driver, s.Spec.Pool.Name, age(&s.ObjectMeta, now)}
	})
	return r
}
