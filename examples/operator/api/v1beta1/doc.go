// Package v1beta1 is an older version of Sites. It is served for those who still use it; conversion.go says what its
// fields have become.
//
// +kubebuilder:object:generate=true
// +groupName=web.example.com
package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	// GroupVersion is what objects of this package have as their apiVersion.
	GroupVersion = schema.GroupVersion{Group: "web.example.com", Version: "v1beta1"}
	builder      = &scheme.Builder{GroupVersion: GroupVersion}
	// AddToScheme makes these types known.
	AddToScheme = builder.AddToScheme
)

func init() { builder.Register(&Site{}, &SiteList{}) }
