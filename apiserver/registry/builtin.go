package registry

import (
	"fmt"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"kontiki/apiserver/registry/validations"
)

// Options are what the built-in rows need to know of the cluster.
type Options struct {
	// ServiceCIDR is where cluster IPs come from; the zero value means 10.96.0.0/16. Its first
	// address belongs to the Service default/kubernetes.
	ServiceCIDR netip.Prefix
	// SecondServiceCIDR is of the other IP family, for clusters of two; the zero value means that there is one.
	SecondServiceCIDR netip.Prefix
	// ClusterCIDR is cut into one /24 (IPv6: /64) per node; the zero value leaves spec.podCIDR of
	// nodes alone.
	ClusterCIDR netip.Prefix
	// SecondClusterCIDR is of the other IP family: nodes get a piece of it, too. The zero value means that there is one.
	SecondClusterCIDR netip.Prefix
	// NodePorts is the range of node ports, both ends included; the zero value means 30000 to 32767.
	NodePorts [2]int32
}

func (o Options) withDefaults() Options {
	if !o.ServiceCIDR.IsValid() {
		o.ServiceCIDR = netip.MustParsePrefix("10.96.0.0/16")
	}
	if o.NodePorts == [2]int32{} {
		o.NodePorts = [2]int32{30000, 32767}
	}
	o.ServiceCIDR, o.SecondServiceCIDR = o.ServiceCIDR.Masked(), o.SecondServiceCIDR.Masked()
	o.ClusterCIDR, o.SecondClusterCIDR = o.ClusterCIDR.Masked(), o.SecondClusterCIDR.Masked()
	return o
}

// Builtin returns a table with all built-in rows, in the order in which clients should look names up.
func Builtin(options Options) *Table {
	options = options.withDefaults()
	t := NewTable(newScheme())
	events := coreEvents()
	rows := slices.Concat(
		coreRows(options, events),
		appsRows(),
		eventsRows(events),
		autoscalingRows(),
		batchRows(),
		networkingRows(),
		policyRows(),
		rbacRows(),
		storageRows(),
		schedulingRows(),
		coordinationRows(),
		nodeRows(),
		discoveryRows(),
		admissionRows(),
		authenticationRows(),
		authorizationRows(),
		certificateRows(),
		flowControlRows(),
		deviceRows(),
		storageMigrationRows(),
		extensionRows(),
		aggregationRows(),
	)
	for _, r := range rows {
		declare(t.scheme, r)
		describeColumns(r)
	}
	if err := t.Add(rows...); err != nil {
		panic(fmt.Sprintf("built-in rows: %v", err)) // two rows of this package collide
	}
	return t
}

// newScheme registers the groups that have rows, the groups of subresource bodies, and the meta
// types that travel in any group (Status, Table, PartialObjectMetadata, the option kinds).
func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme,
		appsv1.AddToScheme,
		coordinationv1.AddToScheme,
		discoveryv1.AddToScheme,
		eventsv1.AddToScheme,
		autoscalingv1.AddToScheme, // Scale
		autoscalingv2.AddToScheme,
		batchv1.AddToScheme,
		networkingv1.AddToScheme,
		policyv1.AddToScheme, // also Eviction
		rbacv1.AddToScheme,
		storagev1.AddToScheme,
		schedulingv1.AddToScheme,
		nodev1.AddToScheme,
		admissionv1.AddToScheme,
		authenticationv1.AddToScheme,
		authorizationv1.AddToScheme,
		certificatesv1.AddToScheme,
		flowcontrolv1.AddToScheme,
		resourcev1.AddToScheme,
		storagemigrationv1.AddToScheme,
		apiextensionsv1.AddToScheme,
		apiregistrationv1.AddToScheme,
		validations.AddToScheme,
		metav1.AddMetaToScheme,
	} {
		if err := add(s); err != nil {
			panic(fmt.Sprintf("built-in types: %v", err)) // two Go types claim one kind
		}
	}
	// kubectl names DeleteOptions by the meta group when it asks for a cascade mode.
	metav1.AddToGroupVersion(s, metav1.SchemeGroupVersion)
	return s
}
