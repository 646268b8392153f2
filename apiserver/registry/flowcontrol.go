package registry

import (
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
)

// flowControlRows are those of API Priority and Fairness: which requests belong together, and how many of
// them are served at once.
func flowControlRows() []*Resource { return []*Resource{flowSchemas(), priorityLevels()} }

func flowSchemas() *Resource {
	r := newRow[flowcontrolv1.FlowSchema, flowcontrolv1.FlowSchemaList](flowcontrolv1.SchemeGroupVersion, "flowschemas", "FlowSchema")
	r.Namespaced = false
	r.Strategy = Strategy{
		Default:  defaulter(func(f *flowcontrolv1.FlowSchema) { setDefault(&f.Spec.MatchingPrecedence, 1000) }),
		Validate: validator(validateFlowSchema),
	}
	r.Subresources = []Subresource{unjudged(sealed(statusOf(r, func(f, old *flowcontrolv1.FlowSchema) { f.Spec = old.Spec })))}
	r.Columns = columns([]string{"Name", "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL"})
	r.Row = cells(func(f *flowcontrolv1.FlowSchema, now time.Time) []any {
		method, missing := none, "?"
		if f.Spec.DistinguisherMethod != nil {
			method = string(f.Spec.DistinguisherMethod.Type)
		}
		for _, c := range f.Status.Conditions {
			if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
				missing = string(c.Status)
			}
		}
		return []any{f.Name, f.Spec.PriorityLevelConfiguration.Name, int64(f.Spec.MatchingPrecedence), method, age(&f.ObjectMeta, now), missing}
	})
	return r
}

func priorityLevels() *Resource {
	r := newRow[flowcontrolv1.PriorityLevelConfiguration, flowcontrolv1.PriorityLevelConfigurationList](
		flowcontrolv1.SchemeGroupVersion, "prioritylevelconfigurations", "PriorityLevelConfiguration")
	r.Namespaced = false
	r.Strategy = Strategy{Default: defaulter(defaultPriorityLevel), Validate: validator(validatePriorityLevel)}
	r.Subresources = []Subresource{unjudged(sealed(statusOf(r, func(p, old *flowcontrolv1.PriorityLevelConfiguration) { p.Spec = old.Spec })))}
	r.Columns = columns([]string{"Name", "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age"})
	r.Row = cells(func(p *flowcontrolv1.PriorityLevelConfiguration, now time.Time) []any {
		var shares, queues, hand, length any = none, none, none, none
		if l := p.Spec.Limited; l != nil {
			if l.NominalConcurrencyShares != nil {
				shares = int64(*l.NominalConcurrencyShares)
			}
			if q := l.LimitResponse.Queuing; q != nil {
				queues, hand, length = int64(q.Queues), int64(q.HandSize), int64(q.QueueLengthLimit)
			}
		}
		return []any{p.Name, string(p.Spec.Type), shares, queues, hand, length, age(&p.ObjectMeta, now)}
	})
	return r
}

func defaultPriorityLevel(p *flowcontrolv1.PriorityLevelConfiguration) {
	if e := p.Spec.Exempt; e != nil {
		setPointer(&e.NominalConcurrencyShares, 0)
		setPointer(&e.LendablePercent, 0)
	}
	if l := p.Spec.Limited; l != nil {
		setPointer(&l.NominalConcurrencyShares, 30)
		setPointer(&l.LendablePercent, 0)
		if q := l.LimitResponse.Queuing; q != nil {
			setDefault(&q.HandSize, 8)
			setDefault(&q.Queues, 64)
			setDefault(&q.QueueLengthLimit, 50)
		}
	}
}
