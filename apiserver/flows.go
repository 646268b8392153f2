package apiserver

import (
	"context"
	"encoding/json"
	"fmt"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/flowcontrol"
)

// The flow schemas and priority levels of the cluster are objects like others. Every server follows them
// and configures its own flow control with them.

var (
	flowSchemas    = flowcontrolv1.SchemeGroupVersion.WithResource("flowschemas")
	priorityLevels = flowcontrolv1.SchemeGroupVersion.WithResource("prioritylevelconfigurations")
)

var flowObjects = []schema.GroupVersionResource{flowSchemas, priorityLevels}

// defaultFlows are the mandatory and the suggested objects. Mandatory ones are put right whenever they differ, suggested ones as
// long as their annotation asks for it.
func defaultFlows() []wanted {
	var out []wanted
	for _, l := range flowcontrol.DefaultLevels() {
		out = append(out, wanted{obj: l, fit: func(present runtime.Object) {
			if p := present.(*flowcontrolv1.PriorityLevelConfiguration); keptUp(p) {
				l.Spec.DeepCopyInto(&p.Spec)
			}
		}})
	}
	for _, f := range flowcontrol.DefaultSchemas() {
		out = append(out, wanted{obj: f, fit: func(present runtime.Object) {
			if p := present.(*flowcontrolv1.FlowSchema); keptUp(p) {
				f.Spec.DeepCopyInto(&p.Spec)
			}
		}})
	}
	return out
}

// bootstrapDangling tells of all schemas whether their levels exist.
func (s *Server) bootstrapDangling(ctx context.Context) error {
	schemas, levels, _, err := s.listFlows(ctx)
	if err != nil {
		return err
	}
	return s.tellDangling(ctx, schemas, levels)
}

// keptUp says whether a default object is to be as this release has it.
func keptUp(obj metav1.Object) bool {
	return flowcontrol.Mandatory(obj.GetName()) || obj.GetAnnotations()[flowcontrolv1.AutoUpdateAnnotationKey] == "true"
}

// configureFlows reads the objects and takes them into use.
func (s *Server) configureFlows(ctx context.Context) (revision int64, err error) {
	schemas, levels, revision, err := s.listFlows(ctx)
	if err != nil {
		return 0, err
	}
	s.inFlight.flows.Configure(schemas, levels)
	if s.booted.Load() { // before, bootstrapDangling does it
		if err := s.tellDangling(ctx, schemas, levels); err != nil {
			s.log.Warn("status of a flow schema could not be written", "err", err)
		}
	}
	return revision, nil
}

// listFlows returns all objects, and a revision from which on a watch misses no change of them.
func (s *Server) listFlows(ctx context.Context) ([]*flowcontrolv1.FlowSchema, []*flowcontrolv1.PriorityLevelConfiguration, int64, error) {
	schemas, revision, err := listAll[*flowcontrolv1.FlowSchema](ctx, s.storeOf(s.table.Lookup(flowSchemas)))
	if err != nil {
		return nil, nil, 0, err
	}
	levels, _, err := listAll[*flowcontrolv1.PriorityLevelConfiguration](ctx, s.storeOf(s.table.Lookup(priorityLevels)))
	return schemas, levels, revision, err
}

// tellDangling says in the status of each schema whether its priority level exists.
func (s *Server) tellDangling(ctx context.Context, schemas []*flowcontrolv1.FlowSchema, levels []*flowcontrolv1.PriorityLevelConfiguration) error {
	known := map[string]bool{}
	for _, l := range levels {
		known[l.Name] = true
	}
	for _, f := range schemas {
		want := flowcontrolv1.FlowSchemaCondition{Type: flowcontrolv1.FlowSchemaConditionDangling, Status: flowcontrolv1.ConditionTrue, Reason: "NotFound",
			Message: fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q but there is no such object", f.Spec.PriorityLevelConfiguration.Name)}
		if known[f.Spec.PriorityLevelConfiguration.Name] {
			want.Status, want.Reason = flowcontrolv1.ConditionFalse, "Found"
			want.Message = fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists", f.Spec.PriorityLevelConfiguration.Name)
		}
		if c := danglingOf(f); c != nil && c.Status == want.Status && c.Message == want.Message {
			continue
		}
		if err := s.setDangling(ctx, f, want); err != nil {
			return err
		}
	}
	return nil
}

func danglingOf(f *flowcontrolv1.FlowSchema) *flowcontrolv1.FlowSchemaCondition {
	for i := range f.Status.Conditions {
		if f.Status.Conditions[i].Type == flowcontrolv1.FlowSchemaConditionDangling {
			return &f.Status.Conditions[i]
		}
	}
	return nil
}

func (s *Server) setDangling(ctx context.Context, f *flowcontrolv1.FlowSchema, want flowcontrolv1.FlowSchemaCondition) error {
	t, err := s.targetOf(f, "")
	if err != nil {
		return err
	}
	t.sub = t.resource.Subresource("status")
	want.LastTransitionTime = metav1.Now()
	applied, err := json.Marshal(map[string]any{
		"apiVersion": flowcontrolv1.SchemeGroupVersion.String(), "kind": "FlowSchema", "metadata": map[string]any{"name": f.Name},
		"status": flowcontrolv1.FlowSchemaStatus{Conditions: []flowcontrolv1.FlowSchemaCondition{want}},
	})
	if err != nil {
		return err
	}
	p := patch{body: applied, options: writeOptions{manager: flowsManager, force: true}}
	_, err = s.change(ctx, t, change{next: func(ctx context.Context, live runtime.Object) (runtime.Object, error) {
		return s.apply(ctx, t, p, live)
	}})
	return err
}

// flowsManager owns the condition, under the name that it has in Kubernetes.
const flowsManager = "api-priority-and-fairness-config-consumer-v1"
