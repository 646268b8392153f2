package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Site is a web server that greets its visitors.
//
// +kubebuilder:object:root=true
// +kubebuilder:deprecatedversion:warning="web.example.com/v1beta1 Site is old: use web.example.com/v1"
// +kubebuilder:resource:shortName=si,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name=Size,type=integer,JSONPath=`.spec.size`
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SiteSpec   `json:"spec"`
	Status SiteStatus `json:"status,omitempty"`
}

// SiteSpec is what somebody wants of a site.
type SiteSpec struct {
	// Greeting is what visitors read.
	Greeting string `json:"greeting,omitempty"`
	// Image is a repository and, after a colon, a tag.
	// +kubebuilder:default="kontiki.local/hello:latest"
	Image string `json:"image,omitempty"`
	// Size is how many servers answer.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Size *int32 `json:"size,omitempty"`
}

// SiteStatus is what has become of it.
type SiteStatus struct {
	Replicas int32  `json:"replicas,omitempty"`
	Selector string `json:"selector,omitempty"`
}

// SiteList is a list of them.
//
// +kubebuilder:object:root=true
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}
