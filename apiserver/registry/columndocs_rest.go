package registry

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1beta1 "k8s.io/api/rbac/v1beta1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// columnDocsOfRest are columnDocs of all that is not a workload.
var columnDocsOfRest = map[string]map[string]string{
	"customresourcedefinitions": {
		"Scope":       "Cluster/Namespaced",
		"Versions":    "Served versions",
		"Group":       "API group",
		"Kind":        "CustomResource kind",
		"ShortNames":  "Short names",
		"Established": "Established status",
	},
	"services": {
		"Type":        corev1.ServiceSpec{}.SwaggerDoc()["type"],
		"Cluster-IP":  corev1.ServiceSpec{}.SwaggerDoc()["clusterIP"],
		"External-IP": corev1.ServiceSpec{}.SwaggerDoc()["externalIPs"],
		"Port(s)":     corev1.ServiceSpec{}.SwaggerDoc()["ports"],
		"Selector":    corev1.ServiceSpec{}.SwaggerDoc()["selector"],
	},
	"endpoints": {
		"Endpoints": corev1.Endpoints{}.SwaggerDoc()["subsets"],
	},
	"nodes": {
		"Status":            "The status of the node",
		"Roles":             "The roles of the node",
		"Version":           corev1.NodeSystemInfo{}.SwaggerDoc()["kubeletVersion"],
		"Internal-IP":       corev1.NodeStatus{}.SwaggerDoc()["addresses"],
		"External-IP":       corev1.NodeStatus{}.SwaggerDoc()["addresses"],
		"OS-Image":          corev1.NodeSystemInfo{}.SwaggerDoc()["osImage"],
		"Kernel-Version":    corev1.NodeSystemInfo{}.SwaggerDoc()["kernelVersion"],
		"Container-Runtime": corev1.NodeSystemInfo{}.SwaggerDoc()["containerRuntimeVersion"],
	},
	"events": {
		"Last Seen":  corev1.Event{}.SwaggerDoc()["lastTimestamp"],
		"Type":       corev1.Event{}.SwaggerDoc()["type"],
		"Reason":     corev1.Event{}.SwaggerDoc()["reason"],
		"Object":     corev1.Event{}.SwaggerDoc()["involvedObject"],
		"Source":     corev1.Event{}.SwaggerDoc()["source"],
		"Message":    corev1.Event{}.SwaggerDoc()["message"],
		"First Seen": corev1.Event{}.SwaggerDoc()["firstTimestamp"],
		"Count":      corev1.Event{}.SwaggerDoc()["count"],
		"Subobject":  corev1.ObjectReference{}.SwaggerDoc()["fieldPath"],
	},
	"namespaces": {
		"Status": "The status of the namespace",
	},
	"secrets": {
		"Type": corev1.Secret{}.SwaggerDoc()["type"],
		"Data": corev1.Secret{}.SwaggerDoc()["data"],
	},
	"configmaps": {
		"Data": corev1.ConfigMap{}.SwaggerDoc()["data"],
	},
	"persistentvolumes": {
		"Capacity":              corev1.PersistentVolumeSpec{}.SwaggerDoc()["capacity"],
		"Access Modes":          corev1.PersistentVolumeSpec{}.SwaggerDoc()["accessModes"],
		"Reclaim Policy":        corev1.PersistentVolumeSpec{}.SwaggerDoc()["persistentVolumeReclaimPolicy"],
		"Claim":                 corev1.PersistentVolumeSpec{}.SwaggerDoc()["claimRef"],
		"VolumeMode":            corev1.PersistentVolumeSpec{}.SwaggerDoc()["volumeMode"],
		"Status":                corev1.PersistentVolumeStatus{}.SwaggerDoc()["phase"],
		"Reason":                corev1.PersistentVolumeStatus{}.SwaggerDoc()["reason"],
		"StorageClass":          "StorageClass of the pv",
		"VolumeAttributesClass": "VolumeAttributesClass of the pv",
	},
	"persistentvolumeclaims": {
		"Status":                corev1.PersistentVolumeClaimStatus{}.SwaggerDoc()["phase"],
		"Capacity":              corev1.PersistentVolumeClaimStatus{}.SwaggerDoc()["capacity"],
		"Access Modes":          corev1.PersistentVolumeClaimStatus{}.SwaggerDoc()["accessModes"],
		"Volume":                corev1.PersistentVolumeClaimSpec{}.SwaggerDoc()["volumeName"],
		"VolumeMode":            corev1.PersistentVolumeClaimSpec{}.SwaggerDoc()["volumeMode"],
		"StorageClass":          "StorageClass of the pvc",
		"VolumeAttributesClass": "VolumeAttributesClass of the pvc",
	},
	"apiservices": {
		"Service":   "The reference to the service that hosts this API endpoint.",
		"Available": "Whether this service is available.",
	},
	"componentstatuses": {
		"Status":  "Status of the component conditions",
		"Message": "Message of the component conditions",
		"Error":   "Error of the component conditions",
	},
	"resourcequotas": {
		"Request": "Request represents a minimum amount of cpu/memory that a container may consume.",
		"Limit":   "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node.",
	},
	"ingresses": {
		"Class":   "The name of the IngressClass resource that should be used for additional configuration",
		"Hosts":   "Hosts that incoming requests are matched against before the ingress rule",
		"Address": "Address is a list containing ingress points for the load-balancer",
		"Ports":   "Ports of TLS configurations that open",
	},
	"ingressclasses": {
		"Controller": "Controller that is responsible for handling this class",
		"Parameters": "A reference to a resource with additional parameters",
	},
	"networkpolicies": {
		"Pod-Selector": networkingv1.NetworkPolicySpec{}.SwaggerDoc()["podSelector"],
	},
	"servicecidrs": {
		"CIDRs": networkingv1.ServiceCIDRSpec{}.SwaggerDoc()["cidrs"],
	},
	"ipaddresses": {
		"ParentRef": networkingv1.IPAddressSpec{}.SwaggerDoc()["parentRef"],
	},
	"rolebindings": {
		"Role":            rbacv1beta1.RoleBinding{}.SwaggerDoc()["roleRef"],
		"Users":           "Users in the roleBinding",
		"Groups":          "Groups in the roleBinding",
		"ServiceAccounts": "ServiceAccounts in the roleBinding",
	},
	"clusterrolebindings": {
		"Role":            rbacv1beta1.ClusterRoleBinding{}.SwaggerDoc()["roleRef"],
		"Users":           "Users in the clusterRoleBinding",
		"Groups":          "Groups in the clusterRoleBinding",
		"ServiceAccounts": "ServiceAccounts in the clusterRoleBinding",
	},
	"certificatesigningrequests": {
		"SignerName":        certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc()["signerName"],
		"Requestor":         certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc()["request"],
		"RequestedDuration": certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc()["expirationSeconds"],
		"Condition":         certificatesv1beta1.CertificateSigningRequestStatus{}.SwaggerDoc()["conditions"],
	},
	"clustertrustbundles": {
		"SignerName": certificatesv1.ClusterTrustBundleSpec{}.SwaggerDoc()["signerName"],
	},
	"podcertificaterequests": {
		"PodName":                   certificatesv1.PodCertificateRequestSpec{}.SwaggerDoc()["podName"],
		"ServiceAccountName":        certificatesv1.PodCertificateRequestSpec{}.SwaggerDoc()["serviceAccountName"],
		"NodeName":                  certificatesv1.PodCertificateRequestSpec{}.SwaggerDoc()["nodeName"],
		"SignerName":                certificatesv1.PodCertificateRequestSpec{}.SwaggerDoc()["signerName"],
		"UnverifiedUserAnnotations": certificatesv1.PodCertificateRequestSpec{}.SwaggerDoc()["unverifiedUserAnnotations"],
		"State":                     "Is the request Pending, Issued, Denied, or Failed?",
	},
	"leases": {
		"Holder": coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"],
	},
	"storageclasses": {
		"Provisioner":          storagev1.StorageClass{}.SwaggerDoc()["provisioner"],
		"ReclaimPolicy":        storagev1.StorageClass{}.SwaggerDoc()["reclaimPolicy"],
		"VolumeBindingMode":    storagev1.StorageClass{}.SwaggerDoc()["volumeBindingMode"],
		"AllowVolumeExpansion": storagev1.StorageClass{}.SwaggerDoc()["allowVolumeExpansion"],
	},
	"volumeattributesclasses": {
		"DriverName": storagev1.VolumeAttributesClass{}.SwaggerDoc()["driverName"],
	},
	"volumeattachments": {
		"Attacher": storagev1.VolumeAttachmentSpec{}.SwaggerDoc()["attacher"],
		"Node":     storagev1.VolumeAttachmentSpec{}.SwaggerDoc()["nodeName"],
		"PV":       storagev1.VolumeAttachmentSource{}.SwaggerDoc()["persistentVolumeName"],
		"Attached": storagev1.VolumeAttachmentStatus{}.SwaggerDoc()["attached"],
	},
	"csinodes": {
		"Drivers": "Drivers indicates the number of CSI drivers registered on the node",
	},
	"csidrivers": {
		"AttachRequired":    storagev1.CSIDriverSpec{}.SwaggerDoc()["attachRequired"],
		"PodInfoOnMount":    storagev1.CSIDriverSpec{}.SwaggerDoc()["podInfoOnMount"],
		"StorageCapacity":   storagev1.CSIDriverSpec{}.SwaggerDoc()["storageCapacity"],
		"TokenRequests":     storagev1.CSIDriverSpec{}.SwaggerDoc()["tokenRequests"],
		"RequiresRepublish": storagev1.CSIDriverSpec{}.SwaggerDoc()["requiresRepublish"],
		"Modes":             storagev1.CSIDriverSpec{}.SwaggerDoc()["volumeLifecycleModes"],
	},
	"priorityclasses": {
		"Value":            schedulingv1.PriorityClass{}.SwaggerDoc()["value"],
		"Global-Default":   schedulingv1.PriorityClass{}.SwaggerDoc()["globalDefault"],
		"PreemptionPolicy": schedulingv1.PriorityClass{}.SwaggerDoc()["preemptionPolicy"],
	},
	"endpointslices": {
		"AddressType": discoveryv1.EndpointSlice{}.SwaggerDoc()["addressType"],
		"Ports":       discoveryv1.EndpointSlice{}.SwaggerDoc()["ports"],
		"Endpoints":   discoveryv1.EndpointSlice{}.SwaggerDoc()["endpoints"],
	},
	"mutatingwebhookconfigurations": {
		"Webhooks": "Webhooks indicates the number of webhooks registered in this configuration",
	},
	"validatingwebhookconfigurations": {
		"Webhooks": "Webhooks indicates the number of webhooks registered in this configuration",
	},
	"validatingadmissionpolicies": {
		"Validations": "Validations indicates the number of validation rules defined in this configuration",
		"ParamKind":   "ParamKind specifies the kind of resources used to parameterize this policy",
	},
	"mutatingadmissionpolicies": {
		"Mutations": "Mutation indicates the number of mutations rules defined in this configuration",
		"ParamKind": "ParamKind specifies the kind of resources used to parameterize this policy",
	},
	"validatingadmissionpolicybindings": {
		"PolicyName": "PolicyName indicates the policy definition which the policy binding binded to",
		"ParamRef":   "ParamRef indicates the param resource which sets the configuration param",
	},
	"mutatingadmissionpolicybindings": {
		"PolicyName": "PolicyName indicates the policy definition which the policy binding binded to",
		"ParamRef":   "ParamRef indicates the param resource which sets the configuration param",
	},
	"flowschemas": {
		"PriorityLevel":       flowcontrolv1.PriorityLevelConfigurationReference{}.SwaggerDoc()["name"],
		"MatchingPrecedence":  flowcontrolv1.FlowSchemaSpec{}.SwaggerDoc()["matchingPrecedence"],
		"DistinguisherMethod": flowcontrolv1.FlowSchemaSpec{}.SwaggerDoc()["distinguisherMethod"],
		"MissingPL":           "references a broken or non-existent PriorityLevelConfiguration",
	},
	"prioritylevelconfigurations": {
		"Type":                     flowcontrolv1.PriorityLevelConfigurationSpec{}.SwaggerDoc()["type"],
		"NominalConcurrencyShares": flowcontrolv1.LimitedPriorityLevelConfiguration{}.SwaggerDoc()["nominalConcurrencyShares"],
		"Queues":                   flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()["queues"],
		"HandSize":                 flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()["handSize"],
		"QueueLengthLimit":         flowcontrolv1.QueuingConfiguration{}.SwaggerDoc()["queueLengthLimit"],
	},
	"storageversionmigrations": {"Resource": "GroupResource to migrate", "Status": "Status of the migration"},
	"resourceclaims": {
		"State": "A summary of the current state (allocated, pending, reserved, etc.).",
	},
	"resourceslices": {
		"Node":   resourcev1.ResourceSliceSpec{}.SwaggerDoc()["nodeName"],
		"Driver": resourcev1.ResourceSliceSpec{}.SwaggerDoc()["driver"],
		"Pool":   resourcev1.ResourcePool{}.SwaggerDoc()["name"],
	},
	"devicetaintrules": {
		"Key":       resourcev1.DeviceTaint{}.SwaggerDoc()["key"],
		"Value":     resourcev1.DeviceTaint{}.SwaggerDoc()["value"],
		"Effect":    resourcev1.DeviceTaint{}.SwaggerDoc()["effect"],
		"TimeAdded": resourcev1.DeviceTaint{}.SwaggerDoc()["timeAdded"],
	},
}
