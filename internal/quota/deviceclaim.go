package quota

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// deviceClaimMeasure is that of ResourceClaims: how many devices of each class they may get.
func deviceClaimMeasure() *Measure {
	claims := resourcev1.Resource("resourceclaims")
	count := countName(claims)
	return &Measure{
		Resource: claims,
		tracks: func(name corev1.ResourceName) bool {
			return name == count || strings.HasSuffix(string(name), corev1.ResourceClaimsPerClass)
		},
		usage: func(obj runtime.Object, _ time.Time) corev1.ResourceList {
			out := corev1.ResourceList{count: one()}
			if claim, ok := obj.(*resourcev1.ResourceClaim); ok {
				for i := range claim.Spec.Devices.Requests {
					add(out, devicesOf(&claim.Spec.Devices.Requests[i]))
				}
			}
			return out
		},
		grows: func(subresource string, _, _ runtime.Object) bool { return subresource == "" },
	}
}

// devicesOf is what a request may get: of alternatives the most of each class.
func devicesOf(r *resourcev1.DeviceRequest) corev1.ResourceList {
	out := corev1.ResourceList{}
	atLeast := func(class string, mode resourcev1.DeviceAllocationMode, count int64) {
		switch mode {
		case resourcev1.DeviceAllocationModeExactCount:
		case resourcev1.DeviceAllocationModeAll:
			count = resourcev1.AllocationResultsMaxSize // the worst case
		default:
			return // of a newer version: not known here
		}
		name := corev1.ResourceName(class + corev1.ResourceClaimsPerClass)
		amount := resource.NewQuantity(count, resource.DecimalSI)
		if known, ok := out[name]; !ok || amount.Cmp(known) > 0 {
			out[name] = *amount
		}
	}
	if e := r.Exactly; e != nil {
		atLeast(e.DeviceClassName, e.AllocationMode, e.Count)
	}
	for _, s := range r.FirstAvailable {
		atLeast(s.DeviceClassName, s.AllocationMode, s.Count)
	}
	return out
}
