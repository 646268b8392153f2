package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Site is a web server that greets its visitors.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=si,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:selectablefield:JSONPath=`.spec.plan`
// +kubebuilder:printcolumn:name=Plan,type=string,JSONPath=`.spec.plan`
// +kubebuilder:printcolumn:name=Wanted,type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name=Ready,type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name=Image,type=string,priority=1,JSONPath=`.spec.image.repository`
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SiteSpec   `json:"spec"`
	Status SiteStatus `json:"status,omitempty"`
}

// SiteSpec is what somebody wants of a site.
//
// +kubebuilder:validation:XValidation:rule="self.plan != 'free' || self.replicas <= 3",messageExpression="'a ' + self.plan + ' site has 3 replicas at most'",reason=FieldValueForbidden,fieldPath=.replicas
// +kubebuilder:validation:XValidation:rule="oldSelf.plan != 'paid' || self.plan == 'paid'",message="what has been paid for stays so"
type SiteSpec struct {
	// Greeting is what visitors read.
	// +kubebuilder:default="Hello from an operator!"
	// +kubebuilder:validation:MaxLength=200
	Greeting string `json:"greeting,omitempty"`
	// +kubebuilder:default={}
	Image Image `json:"image,omitempty"`
	// Replicas is how many servers answer.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	Replicas *int32 `json:"replicas,omitempty"`
	// Plan says how far the site may grow.
	// +kubebuilder:default=free
	// +kubebuilder:validation:Enum=free;paid
	// +kubebuilder:validation:MaxLength=4
	Plan string `json:"plan,omitempty"`
}

// Image is the container image of a site.
type Image struct {
	// +kubebuilder:default="kontiki.local/hello"
	// +kubebuilder:validation:MinLength=1
	Repository string `json:"repository,omitempty"`
	// +kubebuilder:default=latest
	// +kubebuilder:validation:MinLength=1
	Tag string `json:"tag,omitempty"`
}

// SiteStatus is what has become of it.
type SiteStatus struct {
	// Replicas is how many servers there are.
	Replicas      int32 `json:"replicas,omitempty"`
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// Selector finds the pods of the site; autoscalers ask for it.
	Selector string `json:"selector,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SiteList is a list of them.
//
// +kubebuilder:object:root=true
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}

// Hub says that other versions are converted to this one and from it.
func (*Site) Hub() {}
