package flowcontrol

import (
	"slices"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The objects that every cluster begins with, with the values of Kubernetes:
// https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#defaults. The mandatory ones are
// always as they are here. The others may be changed, once their annotation AutoUpdateAnnotationKey is "false".

// DefaultLevels are the mandatory priority levels, exempt and catch-all, and the suggested ones.
func DefaultLevels() []*flowcontrolv1.PriorityLevelConfiguration {
	return append(mandatoryLevels(),
		limited("system", 30, 33, 64, 6),
		limited("node-high", 40, 25, 64, 6),
		limited("leader-election", 10, 0, 16, 4),
		limited("workload-high", 40, 50, 128, 6),
		limited("workload-low", 100, 90, 128, 6),
		limited("global-default", 20, 50, 128, 6),
	)
}

// DefaultSchemas are the mandatory flow schemas, exempt and catch-all, and the suggested ones.
func DefaultSchemas() []*flowcontrolv1.FlowSchema {
	everyone := groups("system:unauthenticated", "system:authenticated")
	nodes := groups("system:nodes")
	controllers, scheduler := user("system:kube-controller-manager"), user("system:kube-scheduler")
	leases := resources(true, "coordination.k8s.io", "leases")
	probes := schema("probes", "exempt", 2, "", everyone, flowcontrolv1.PolicyRulesWithSubjects{
		NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz", "/readyz", "/livez"}}},
	})
	election := leases
	election.Verbs = []string{"get", "create", "update"}
	return append(mandatorySchemas(),
		probes,
		schema("system-leader-election", "leader-election", 100, byUser,
			[]flowcontrolv1.Subject{controllers, scheduler, systemAccounts}, rulesFor(election)),
		schema("system-node-high", "node-high", 400, byUser, nodes, rulesFor(resources(false, "", "nodes", "nodes/status"), leases)),
		schema("system-nodes", "system", 500, byUser, nodes, everything()),
		schema("kube-controller-manager", "workload-high", 800, byNamespace, []flowcontrolv1.Subject{controllers}, everything()),
		schema("kube-scheduler", "workload-high", 800, byNamespace, []flowcontrolv1.Subject{scheduler}, everything()),
		schema("kube-system-service-accounts", "workload-high", 900, byNamespace, []flowcontrolv1.Subject{systemAccounts}, everything()),
		schema("service-accounts", "workload-low", 9000, byUser, groups("system:serviceaccounts"), everything()),
		schema("global-default", "global-default", 9900, byUser, everyone, everything()),
	)
}

// Mandatory says whether an object of that name must be as Defaults has it.
func Mandatory(name string) bool {
	return name == flowcontrolv1.FlowSchemaNameExempt || name == flowcontrolv1.FlowSchemaNameCatchAll
}

func mandatoryLevels() []*flowcontrolv1.PriorityLevelConfiguration {
	zero := int32(0)
	exempt := priorityLevel("exempt", flowcontrolv1.PriorityLevelConfigurationSpec{
		Type:   flowcontrolv1.PriorityLevelEnablementExempt,
		Exempt: &flowcontrolv1.ExemptPriorityLevelConfiguration{NominalConcurrencyShares: &zero, LendablePercent: &zero},
	})
	rest := limited("catch-all", 5, 0, 0, 0)
	rest.Spec.Limited.LimitResponse = flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}
	return []*flowcontrolv1.PriorityLevelConfiguration{exempt, rest}
}

func mandatorySchemas() []*flowcontrolv1.FlowSchema {
	return []*flowcontrolv1.FlowSchema{
		schema("exempt", "exempt", 1, "", groups("system:masters"), everything()),
		schema("catch-all", "catch-all", 10000, byUser, groups("system:unauthenticated", "system:authenticated"), everything()),
	}
}

// withMandatory adds the mandatory objects that are missing.
func withMandatory(schemas []*flowcontrolv1.FlowSchema, levels []*flowcontrolv1.PriorityLevelConfiguration) ([]*flowcontrolv1.FlowSchema, []*flowcontrolv1.PriorityLevelConfiguration) {
	schemas, levels = slices.Clone(schemas), slices.Clone(levels)
	for _, m := range mandatorySchemas() {
		if !slices.ContainsFunc(schemas, func(s *flowcontrolv1.FlowSchema) bool { return s.Name == m.Name }) {
			schemas = append(schemas, m)
		}
	}
	for _, m := range mandatoryLevels() {
		if !slices.ContainsFunc(levels, func(p *flowcontrolv1.PriorityLevelConfiguration) bool { return p.Name == m.Name }) {
			levels = append(levels, m)
		}
	}
	return schemas, levels
}

const (
	byUser      = flowcontrolv1.FlowDistinguisherMethodByUserType
	byNamespace = flowcontrolv1.FlowDistinguisherMethodByNamespaceType
)

var every = []string{"*"}

var systemAccounts = flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindServiceAccount,
	ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: "kube-system", Name: "*"}}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Annotations: map[string]string{flowcontrolv1.AutoUpdateAnnotationKey: "true"}}
}

func priorityLevel(name string, spec flowcontrolv1.PriorityLevelConfigurationSpec) *flowcontrolv1.PriorityLevelConfiguration {
	return &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: meta(name), Spec: spec}
}

func limited(name string, shares, lendablePercent, queues, handSize int32) *flowcontrolv1.PriorityLevelConfiguration {
	return priorityLevel(name, flowcontrolv1.PriorityLevelConfigurationSpec{
		Type: flowcontrolv1.PriorityLevelEnablementLimited,
		Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: &shares,
			LendablePercent:          &lendablePercent,
			LimitResponse: flowcontrolv1.LimitResponse{
				Type:    flowcontrolv1.LimitResponseTypeQueue,
				Queuing: &flowcontrolv1.QueuingConfiguration{Queues: queues, HandSize: handSize, QueueLengthLimit: 50},
			},
		},
	})
}

// schema makes a FlowSchema; rules gets the subjects.
func schema(name, level string, precedence int32, method flowcontrolv1.FlowDistinguisherMethodType, subjects []flowcontrolv1.Subject, rules flowcontrolv1.PolicyRulesWithSubjects) *flowcontrolv1.FlowSchema {
	rules.Subjects = subjects
	s := &flowcontrolv1.FlowSchema{ObjectMeta: meta(name), Spec: flowcontrolv1.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
		MatchingPrecedence:         precedence,
		Rules:                      []flowcontrolv1.PolicyRulesWithSubjects{rules},
	}}
	if method != "" {
		s.Spec.DistinguisherMethod = &flowcontrolv1.FlowDistinguisherMethod{Type: method}
	}
	return s
}

func groups(names ...string) (subjects []flowcontrolv1.Subject) {
	for _, name := range names {
		subjects = append(subjects, flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: name}})
	}
	return subjects
}

func user(name string) flowcontrolv1.Subject {
	return flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: name}}
}

// resources is a rule for every verb on resources of a group: in all namespaces, or without one as well.
func resources(namespacedOnly bool, group string, names ...string) flowcontrolv1.ResourcePolicyRule {
	return flowcontrolv1.ResourcePolicyRule{Verbs: every, APIGroups: []string{group}, Resources: names, Namespaces: every, ClusterScope: !namespacedOnly}
}

func rulesFor(rules ...flowcontrolv1.ResourcePolicyRule) flowcontrolv1.PolicyRulesWithSubjects {
	return flowcontrolv1.PolicyRulesWithSubjects{ResourceRules: rules}
}

// everything is a rule for all requests.
func everything() flowcontrolv1.PolicyRulesWithSubjects {
	return flowcontrolv1.PolicyRulesWithSubjects{
		ResourceRules:    []flowcontrolv1.ResourcePolicyRule{resources(false, "*", "*")},
		NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: every, NonResourceURLs: every}},
	}
}
