// Package v1 is the version of Sites that is stored, and that others are converted by way of.
//
// +kubebuilder:object:generate=true
// +groupName=web.example.com
package v1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	// GroupVersion is what objects of this package have as their apiVersion.
	GroupVersion = schema.GroupVersion{Group: "web.example.com", Version: "v1"}
	builder      = &scheme.Builder{GroupVersion: GroupVersion}
	// AddToScheme makes these types known.
	AddToScheme = builder.AddToScheme
)

func init() { builder.Register(&Site{}, &SiteList{}) }
