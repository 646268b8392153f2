package openapi

import (
	"reflect"
	"strings"
)

// enums are the values of the string types whose comments in k8s.io/api say +enum, which reflection cannot see:
// with enumSeparator between, by package and name of the type without "k8s.io/". TestEnumsAreThoseOfTheSources tells
// what to add for a new release of k8s.io/api.
var enums = map[string]string{
	"api/admissionregistration/v1.FailurePolicyType":      "Fail|Ignore",
	"api/admissionregistration/v1.MatchPolicyType":        "Equivalent|Exact",
	"api/admissionregistration/v1.OperationType":          "*|CONNECT|CREATE|DELETE|UPDATE",
	"api/admissionregistration/v1.PatchType":              "ApplyConfiguration|JSONPatch",
	"api/admissionregistration/v1.ReinvocationPolicyType": "IfNeeded|Never",
	"api/admissionregistration/v1.ScopeType":              "*|Cluster|Namespaced",
	"api/admissionregistration/v1.SideEffectClass":        "None|NoneOnDryRun|Some|Unknown",
	"api/admissionregistration/v1.ValidationAction":       "Audit|Deny|Warn",
	"api/apps/v1.DaemonSetUpdateStrategyType":             "OnDelete|RollingUpdate",
	"api/apps/v1.DeploymentStrategyType":                  "Recreate|RollingUpdate",
	"api/apps/v1.PodManagementPolicyType":                 "OrderedReady|Parallel",
	"api/apps/v1.StatefulSetUpdateStrategyType":           "OnDelete|Recreate|RollingUpdate",
	"api/batch/v1.CompletionMode":                         "Indexed|NonIndexed",
	"api/batch/v1.ConcurrencyPolicy":                      "Allow|Forbid|Replace",
	"api/batch/v1.PodFailurePolicyAction":                 "Count|FailIndex|FailJob|Ignore",
	"api/batch/v1.PodFailurePolicyOnExitCodesOperator":    "In|NotIn",
	"api/batch/v1.PodReplacementPolicy":                   "Failed|TerminatingOrFailed",
	"api/certificates/v1.KeyUsage":                        "any|cert sign|client auth|code signing|content commitment|crl sign|data encipherment|decipher only|digital signature|email protection|encipher only|ipsec end system|ipsec tunnel|ipsec user|key agreement|key encipherment|microsoft sgc|netscape sgc|ocsp signing|s/mime|server auth|signing|timestamping",
	"api/core/v1.AppArmorProfileType":                     "Localhost|RuntimeDefault|Unconfined",
	"api/core/v1.AzureDataDiskCachingMode":                "None|ReadOnly|ReadWrite",
	"api/core/v1.AzureDataDiskKind":                       "Dedicated|Managed|Shared",
	"api/core/v1.ClaimResourceStatus":                     "ControllerResizeInProgress|ControllerResizeInfeasible|NodeResizeInProgress|NodeResizeInfeasible|NodeResizePending",
	"api/core/v1.DNSPolicy":                               "ClusterFirst|ClusterFirstWithHostNet|Default|None",
	"api/core/v1.GRPCProbeMode":                           "Plaintext|TLS",
	"api/core/v1.HTTPProtocol":                            "HTTP1|HTTP2",
	"api/core/v1.HostPathType":                            "|BlockDevice|CharDevice|Directory|DirectoryOrCreate|File|FileOrCreate|Socket",
	"api/core/v1.IPFamily":                                "|IPv4|IPv6",
	"api/core/v1.IPFamilyPolicy":                          "PreferDualStack|RequireDualStack|SingleStack",
	"api/core/v1.MountPropagationMode":                    "Bidirectional|HostToContainer|None",
	"api/core/v1.NamespacePhase":                          "Active|Terminating",
	"api/core/v1.NodeInclusionPolicy":                     "Honor|Ignore",
	"api/core/v1.NodePhase":                               "Pending|Running|Terminated",
	"api/core/v1.NodeSelectorOperator":                    "DoesNotExist|Exists|Gt|In|Lt|NotIn",
	"api/core/v1.PersistentVolumeAccessMode":              "ReadOnlyMany|ReadWriteMany|ReadWriteOnce|ReadWriteOncePod",
	"api/core/v1.PersistentVolumeClaimModifyVolumeStatus": "InProgress|Infeasible|Pending",
	"api/core/v1.PersistentVolumeClaimPhase":              "Bound|Lost|Pending",
	"api/core/v1.PersistentVolumeMode":                    "Block|Filesystem",
	"api/core/v1.PersistentVolumePhase":                   "Available|Bound|Failed|Pending|Released",
	"api/core/v1.PersistentVolumeReclaimPolicy":           "Delete|Recycle|Retain",
	"api/core/v1.PodFSGroupChangePolicy":                  "Always|OnRootMismatch",
	"api/core/v1.PodPhase":                                "Failed|Pending|Running|Succeeded|Unknown",
	"api/core/v1.PodQOSClass":                             "BestEffort|Burstable|Guaranteed",
	"api/core/v1.PreemptionPolicy":                        "Never|PreemptLowerPriority",
	"api/core/v1.ProcMountType":                           "Default|Unmasked",
	"api/core/v1.Protocol":                                "SCTP|TCP|UDP",
	"api/core/v1.PullPolicy":                              "Always|IfNotPresent|Never",
	"api/core/v1.ResourceQuotaScope":                      "BestEffort|CrossNamespacePodAffinity|NotBestEffort|NotTerminating|PriorityClass|Terminating|VolumeAttributesClass",
	"api/core/v1.RestartPolicy":                           "Always|Never|OnFailure",
	"api/core/v1.ScopeSelectorOperator":                   "DoesNotExist|Exists|In|NotIn",
	"api/core/v1.SeccompProfileType":                      "Localhost|RuntimeDefault|Unconfined",
	"api/core/v1.ServiceAffinity":                         "ClientIP|None",
	"api/core/v1.ServiceExternalTrafficPolicy":            "Cluster|Local",
	"api/core/v1.ServiceInternalTrafficPolicy":            "Cluster|Local",
	"api/core/v1.ServiceType":                             "ClusterIP|ExternalName|LoadBalancer|NodePort",
	"api/core/v1.Signal":                                  "SIGABRT|SIGALRM|SIGBUS|SIGCHLD|SIGCLD|SIGCONT|SIGFPE|SIGHUP|SIGILL|SIGINT|SIGIO|SIGIOT|SIGKILL|SIGPIPE|SIGPOLL|SIGPROF|SIGPWR|SIGQUIT|SIGRTMAX|SIGRTMAX-1|SIGRTMAX-10|SIGRTMAX-11|SIGRTMAX-12|SIGRTMAX-13|SIGRTMAX-14|SIGRTMAX-2|SIGRTMAX-3|SIGRTMAX-4|SIGRTMAX-5|SIGRTMAX-6|SIGRTMAX-7|SIGRTMAX-8|SIGRTMAX-9|SIGRTMIN|SIGRTMIN+1|SIGRTMIN+10|SIGRTMIN+11|SIGRTMIN+12|SIGRTMIN+13|SIGRTMIN+14|SIGRTMIN+15|SIGRTMIN+2|SIGRTMIN+3|SIGRTMIN+4|SIGRTMIN+5|SIGRTMIN+6|SIGRTMIN+7|SIGRTMIN+8|SIGRTMIN+9|SIGSEGV|SIGSTKFLT|SIGSTOP|SIGSYS|SIGTERM|SIGTRAP|SIGTSTP|SIGTTIN|SIGTTOU|SIGURG|SIGUSR1|SIGUSR2|SIGVTALRM|SIGWINCH|SIGXCPU|SIGXFSZ",
	"api/core/v1.SupplementalGroupsPolicy":                "Merge|Strict",
	"api/core/v1.TaintEffect":                             "NoExecute|NoSchedule|PreferNoSchedule",
	"api/core/v1.TerminationMessagePolicy":                "FallbackToLogsOnError|File",
	"api/core/v1.TolerationOperator":                      "Equal|Exists|Gt|Lt",
	"api/core/v1.URIScheme":                               "HTTP|HTTPS",
	"api/core/v1.UnsatisfiableConstraintAction":           "DoNotSchedule|ScheduleAnyway",
	"api/core/v1.VolumeHealthStatusType":                  "DataLoss|Degraded|Inaccessible",
	"api/discovery/v1.AddressType":                        "FQDN|IPv4|IPv6",
	"api/networking/v1.PathType":                          "Exact|ImplementationSpecific|Prefix",
	"api/networking/v1.PolicyType":                        "Egress|Ingress",
	"api/policy/v1.UnhealthyPodEvictionPolicyType":        "AlwaysAllow|IfHealthyBudget",
	"api/resource/v1.AllocationConfigSource":              "FromClaim|FromClass",
	"api/resource/v1.DeviceAllocationMode":                "All|ExactCount",
	"api/resource/v1.DeviceTaintEffect":                   "NoExecute|NoSchedule|None",
	"api/resource/v1.DeviceTolerationOperator":            "Equal|Exists",
	"api/resource/v1.SkipNodeOperation":                   "*|NodePrepareResources|NodeUnprepareResources",
	"api/storage/v1.StorageHealthStatusType":              "StorageDegraded|StorageUnreachable",
	"api/storage/v1.VolumeBindingMode":                    "Immediate|WaitForFirstConsumer",
}

const enumSeparator = "|"

func enumName(t reflect.Type) string {
	return strings.TrimPrefix(t.PkgPath()+"."+t.Name(), "k8s.io/")
}

// enumOf returns the values that a string type may have, nil if it is no enum.
func enumOf(t reflect.Type) (out []any) {
	values, ok := enums[enumName(t)]
	if !ok {
		return nil
	}
	for value := range strings.SplitSeq(values, enumSeparator) {
		out = append(out, value)
	}
	return out
}
