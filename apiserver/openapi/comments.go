package openapi

import (
	"slices"
	"strings"
)

// This file has what k8s.io/api says in comments only (+optional, +required, +listType, +mapType) and the schema of
// server-side apply does not repeat, as it has no types that are never applied. Reflection cannot see comments.
// TestDocumentsOfUpstream tells what to add for a new release of k8s.io/api.

// fieldSet has names of fields, separated by spaces, by the name of a definition without "io.k8s.".
type fieldSet map[string]string

func (s fieldSet) has(definition, field string) bool {
	return slices.Contains(strings.Fields(s[definition]), field)
}

// optionalFields may be left out although their tags lack omitempty.
var optionalFields = fieldSet{
	"api.apps.v1.ControllerRevision":                       "revision",
	"api.apps.v1.DaemonSetCondition":                       "status type",
	"api.apps.v1.DeploymentCondition":                      "status type",
	"api.apps.v1.ReplicaSetCondition":                      "status type",
	"api.apps.v1.StatefulSetCondition":                     "status type",
	"api.apps.v1.StatefulSetOrdinals":                      "start",
	"api.apps.v1.StatefulSetSpec":                          "serviceName",
	"api.apps.v1.StatefulSetStatus":                        "availableReplicas",
	"api.authentication.v1.TokenRequest":                   "spec",
	"api.authentication.v1.TokenRequestSpec":               "audiences boundObjectRef expirationSeconds",
	"api.authentication.v1.TokenRequestStatus":             "expirationTimestamp token",
	"api.autoscaling.v2.HorizontalPodAutoscalerStatus":     "currentMetrics",
	"api.batch.v1.PodFailurePolicyOnPodConditionsPattern":  "status",
	"api.core.v1.AzureFilePersistentVolumeSource":          "secretNamespace",
	"api.core.v1.ContainerImage":                           "names",
	"api.core.v1.Event":                                    "reportingComponent reportingInstance",
	"api.core.v1.GRPCAction":                               "service",
	"api.core.v1.NodeRuntimeHandler":                       "name",
	"api.core.v1.ProjectedVolumeSource":                    "sources",
	"api.core.v1.TypedLocalObjectReference":                "apiGroup",
	"api.core.v1.TypedObjectReference":                     "apiGroup",
	"api.discovery.v1.EndpointSlice":                       "endpoints ports",
	"api.events.v1.Event":                                  "metadata",
	"api.flowcontrol.v1.FlowSchemaSpec":                    "matchingPrecedence",
	"api.flowcontrol.v1.LimitedPriorityLevelConfiguration": "nominalConcurrencyShares",
	"api.flowcontrol.v1.QueuingConfiguration":              "handSize queueLengthLimit queues",
	"api.flowcontrol.v1.ResourcePolicyRule":                "namespaces",
	"api.networking.v1.IngressClassParametersReference":    "scope",
	"api.networking.v1.NetworkPolicySpec":                  "podSelector",
	"api.policy.v1.PodDisruptionBudgetStatus":              "currentHealthy desiredHealthy disruptionsAllowed expectedPods",
	"api.rbac.v1.ClusterRole":                              "rules",
	"api.rbac.v1.Role":                                     "rules",
	"api.rbac.v1.RoleRef":                                  "apiGroup",
	"api.resource.v1.AllocatedDeviceStatus":                "conditions",
	"api.resource.v1.CapacityRequestPolicy":                "default",
	"api.resource.v1.DeviceClaim":                          "requests",
	"api.resource.v1.DeviceClass":                          "spec",
	"api.resource.v1.ResourceClaim":                        "spec",
	"api.resource.v1.ResourceClaimSpec":                    "devices",
	"api.resource.v1.ResourceClaimTemplate":                "spec",
	"api.resource.v1.ResourceClaimTemplateSpec":            "spec",
	"api.scheduling.v1.PriorityClass":                      "value",
	"api.storage.v1.CSINodeDriver":                         "topologyKeys",
}

// requiredFields may not be left out although their tags have omitempty.
var requiredFields = fieldSet{
	"api.admissionregistration.v1.ValidatingAdmissionPolicyBinding":     "spec",
	"api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec": "policyName validationActions",
	"api.apps.v1.DaemonSet":                                  "spec",
	"api.apps.v1.Deployment":                                 "spec",
	"api.apps.v1.ReplicaSet":                                 "spec",
	"api.apps.v1.StatefulSet":                                "spec",
	"api.authentication.v1.TokenReviewSpec":                  "token",
	"api.autoscaling.v1.HorizontalPodAutoscaler":             "spec",
	"api.autoscaling.v2.HorizontalPodAutoscaler":             "spec",
	"api.batch.v1.CronJob":                                   "spec",
	"api.core.v1.ContainerRestartRule":                       "action",
	"api.core.v1.ContainerRestartRuleOnExitCodes":            "operator",
	"api.core.v1.ImageVolumeStatus":                          "imageRef",
	"api.core.v1.PodCertificateProjection":                   "keyType signerName",
	"api.flowcontrol.v1.FlowSchema":                          "spec",
	"api.flowcontrol.v1.FlowSchemaCondition":                 "type",
	"api.flowcontrol.v1.LimitedPriorityLevelConfiguration":   "limitResponse",
	"api.flowcontrol.v1.PriorityLevelConfiguration":          "spec",
	"api.flowcontrol.v1.PriorityLevelConfigurationCondition": "type",
	"api.networking.v1.IPAddress":                            "spec",
	"api.networking.v1.IPAddressSpec":                        "parentRef",
	"api.networking.v1.ParentReference":                      "name resource",
	"api.resource.v1.CapacityRequestPolicyRange":             "min",
	"api.resource.v1.CounterSet":                             "counters",
	"api.resource.v1.DeviceCounterConsumption":               "counters",
	"api.resource.v1.DeviceTaintRuleSpec":                    "taint",
}

// atomicLists have one owner.
var atomicLists = fieldSet{
	"api.authentication.v1.TokenRequestSpec":                 "audiences",
	"api.authentication.v1.TokenReviewSpec":                  "audiences",
	"api.authentication.v1.TokenReviewStatus":                "audiences",
	"api.authentication.v1.UserInfo":                         "groups",
	"api.authorization.v1.FieldSelectorAttributes":           "requirements",
	"api.authorization.v1.LabelSelectorAttributes":           "requirements",
	"api.authorization.v1.NonResourceRule":                   "nonResourceURLs verbs",
	"api.authorization.v1.ResourceRule":                      "apiGroups resourceNames resources verbs",
	"api.authorization.v1.SubjectAccessReviewSpec":           "groups",
	"api.authorization.v1.SubjectRulesReviewStatus":          "nonResourceRules resourceRules",
	"apimachinery.pkg.apis.meta.v1.APIResource":              "categories shortNames",
	"apimachinery.pkg.apis.meta.v1.APIResourceList":          "resources",
	"apimachinery.pkg.apis.meta.v1.FieldSelectorRequirement": "values",
	"apimachinery.pkg.apis.meta.v1.StatusDetails":            "causes",
}

// atomicStructs have one owner.
var atomicStructs = map[string]bool{}

// granularMaps are said to have an owner for each key, which all maps have that are not said to be atomic.
var granularMaps = map[string]bool{
	"api.core.v1.PersistentVolumeClaimStatus.allocatedResourceStatuses": true,
	"api.core.v1.PersistentVolumeSpec.claimRef":                         true,
}

// defaults of fields.
var defaults = map[string]any{
	"api.autoscaling.v1.ScaleSpec.replicas": 0,
}
