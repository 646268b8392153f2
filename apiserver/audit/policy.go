package audit

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// defaultPolicy is in force where there is a sink and no policy file. (kube-apiserver records nothing then.)
//
//go:embed defaultpolicy.yaml
var defaultPolicy []byte

// A Policy decides how much is recorded of a request: the first rule that the request matches says so, and nothing is
// recorded if none does (https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/#audit-k8s-io-v1-Policy).
type Policy struct {
	rules []rule
}

// Decision is how much is recorded of a request.
type Decision struct {
	Level             auditv1.Level
	OmitStages        []auditv1.Stage
	OmitManagedFields bool
}

// records says whether the decision's level is at least the other one.
func (d Decision) records(level auditv1.Level) bool { return rank(d.Level) >= rank(level) }

var levels = []auditv1.Level{auditv1.LevelNone, auditv1.LevelMetadata, auditv1.LevelRequest, auditv1.LevelRequestResponse}

func rank(level auditv1.Level) int { return max(0, slices.Index(levels, level)) }

var stages = []auditv1.Stage{auditv1.StageRequestReceived, auditv1.StageResponseStarted, auditv1.StageResponseComplete, auditv1.StagePanic}

// DefaultPolicy is the policy for those who have none.
func DefaultPolicy() *Policy {
	policy, err := ParsePolicy(defaultPolicy)
	if err != nil {
		panic(err) // a broken build
	}
	return policy
}

// LoadPolicy reads a policy's file.
func LoadPolicy(path string) (*Policy, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	policy, err := ParsePolicy(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return policy, nil
}

// ParsePolicy reads a policy, in YAML or JSON. The error wraps ErrPolicy and names every fault.
func ParsePolicy(data []byte) (*Policy, error) {
	var file auditv1.Policy
	plain, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrPolicy, strings.Join(strings.Fields(err.Error()), " ")) // the parser's takes lines
	}
	unknown, err := kjson.UnmarshalStrict(plain, &file)
	if err = errors.Join(append(unknown, err)...); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrPolicy, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if want := auditv1.SchemeGroupVersion.WithKind("Policy"); file.GroupVersionKind() != want {
		return nil, fmt.Errorf("%w: it must begin with apiVersion: %s and kind: Policy", ErrPolicy, want.GroupVersion())
	}
	if len(file.Rules) == 0 {
		return nil, fmt.Errorf("%w: it has no rules", ErrPolicy)
	}
	if faults := validate(&file); len(faults) > 0 {
		return nil, fmt.Errorf("%w: %v", ErrPolicy, faults.ToAggregate())
	}
	policy := &Policy{}
	for _, r := range file.Rules {
		compiled := rule{PolicyRule: r, decision: Decision{
			Level: r.Level, OmitStages: slices.Concat(file.OmitStages, r.OmitStages), OmitManagedFields: file.OmitManagedFields,
		}}
		if r.OmitManagedFields != nil {
			compiled.decision.OmitManagedFields = *r.OmitManagedFields
		}
		policy.rules = append(policy.rules, compiled)
	}
	return policy, nil
}

// Decide returns what the first rule says that the request matches.
func (p *Policy) Decide(request *Request) Decision {
	for i := range p.rules {
		if p.rules[i].matches(request) {
			return p.rules[i].decision
		}
	}
	return Decision{Level: auditv1.LevelNone}
}

func validate(policy *auditv1.Policy) field.ErrorList {
	faults := validateStages(policy.OmitStages, field.NewPath("omitStages"))
	for i := range policy.Rules {
		faults = append(faults, validateRule(&policy.Rules[i], field.NewPath("rules").Index(i))...)
	}
	return faults
}

func validateRule(r *auditv1.PolicyRule, path *field.Path) field.ErrorList {
	faults := validateStages(r.OmitStages, path.Child("omitStages"))
	if r.Level == "" {
		faults = append(faults, field.Required(path.Child("level"), "one of None, Metadata, Request, RequestResponse"))
	} else if !slices.Contains(levels, r.Level) {
		faults = append(faults, field.NotSupported(path.Child("level"), r.Level, levels))
	}
	for i, url := range r.NonResourceURLs {
		at := path.Child("nonResourceURLs").Index(i)
		if url != "*" && !strings.HasPrefix(url, "/") {
			faults = append(faults, field.Invalid(at, url, "must begin with /"))
		}
		if star := strings.IndexByte(url, '*'); star >= 0 && star < len(url)-1 {
			faults = append(faults, field.Invalid(at, url, "* must be the last character"))
		}
	}
	if len(r.NonResourceURLs) > 0 && len(r.Resources)+len(r.Namespaces) > 0 {
		faults = append(faults, field.Invalid(path.Child("nonResourceURLs"), r.NonResourceURLs, "a rule is for resources or for other URLs, not for both"))
	}
	for i, resources := range r.Resources {
		faults = append(faults, validateResources(resources, path.Child("resources").Index(i))...)
	}
	return faults
}

func validateResources(r auditv1.GroupResources, path *field.Path) (faults field.ErrorList) {
	if r.Group != "" && r.Group != "*" {
		for _, fault := range validation.IsDNS1123Subdomain(r.Group) { // a version after the group, most often
			faults = append(faults, field.Invalid(path.Child("group"), r.Group, fault))
		}
	}
	if len(r.ResourceNames) > 0 && len(r.Resources) == 0 {
		faults = append(faults, field.Invalid(path.Child("resourceNames"), r.ResourceNames, "needs at least one of resources"))
	}
	return faults
}

func validateStages(omit []auditv1.Stage, path *field.Path) (faults field.ErrorList) {
	for i, stage := range omit {
		if !slices.Contains(stages, stage) {
			faults = append(faults, field.NotSupported(path.Index(i), stage, stages))
		}
	}
	return faults
}
