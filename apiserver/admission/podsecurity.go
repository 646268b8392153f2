package admission

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/pod-security-admission/admission"
	"k8s.io/pod-security-admission/admission/api/load"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/metrics"
	"k8s.io/pod-security-admission/policy"
)

// podSecurity holds the pods of a namespace to the Pod Security Standard that its labels name
// (https://kubernetes.io/docs/concepts/security/pod-security-admission/): "enforce" refuses pods, "warn" and "audit" only tell, of
// templates too. The standards themselves are k8s.io/pod-security-admission.
type podSecurity struct {
	judge *admission.Admission
}

// newPodSecurity reads a PodSecurityConfiguration: defaults for namespaces without labels, and exemptions. Nil
// means no restrictions by default.
func newPodSecurity(objects Objects, config []byte) (podSecurity, error) {
	configuration, err := load.LoadFromData(config)
	if err != nil {
		return podSecurity{}, fmt.Errorf("%w: PodSecurity: %w", ErrConfiguration, err)
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return podSecurity{}, fmt.Errorf("PodSecurity: %w", err)
	}
	judge := &admission.Admission{
		Configuration: configuration, Evaluator: evaluator, Metrics: uncounted{},
		NamespaceGetter: podSecurityObjects{objects}, PodLister: podSecurityObjects{objects},
	}
	if err := errors.Join(judge.CompleteConfiguration(), judge.ValidateConfiguration()); err != nil {
		return podSecurity{}, fmt.Errorf("%w: PodSecurity: %w", ErrConfiguration, err)
	}
	return podSecurity{judge}, nil
}

// Validate implements Validator.
func (p podSecurity) Validate(ctx context.Context, r *Request) error {
	resource := r.Resource.GroupResource()
	if r.Operation != Create && r.Operation != Update || !p.judge.PodSpecExtractor.HasPodSpec(resource) && resource != namespaces.GroupResource() {
		return nil
	}
	answer := p.judge.Validate(ctx, &api.AttributesRecord{
		Name: r.Name, Namespace: r.Namespace, Kind: r.Kind, Resource: r.Resource, Subresource: r.Subresource,
		Operation: admissionv1.Operation(r.Operation), Object: r.Object, OldObject: r.Old, Username: r.User.Username,
	})
	for _, text := range answer.Warnings {
		r.Warn(text)
	}
	for key, value := range answer.AuditAnnotations {
		r.Annotate(api.AuditAnnotationPrefix+key, value)
	}
	if answer.Allowed {
		return nil
	}
	err := refused(r, "Not allowed by PodSecurity")
	var status *apierrors.StatusError
	if said := answer.Result; said != nil && errors.As(err, &status) {
		status.ErrStatus.Message, status.ErrStatus.Reason, status.ErrStatus.Code = said.Message, said.Reason, said.Code
		if said.Details != nil {
			status.ErrStatus.Details = said.Details
		}
	}
	return err
}

// podSecurityObjects is what the library looks up.
type podSecurityObjects struct{ objects Objects }

// GetNamespace implements admission.NamespaceGetter.
func (p podSecurityObjects) GetNamespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	found, err := p.objects.Get(ctx, namespaces, "", name)
	if err != nil {
		return nil, err
	}
	return found.(*corev1.Namespace), nil
}

// ListPods implements admission.PodLister: those that a stricter label would concern, for warnings. The library sorts
// the slice.
func (p podSecurityObjects) ListPods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	all, err := p.objects.List(ctx, pods, namespace)
	if err != nil {
		return nil, err
	}
	out := make([]*corev1.Pod, 0, len(all))
	for _, o := range all {
		out = append(out, o.(*corev1.Pod))
	}
	return out, nil
}

// uncounted is no metrics: what is refused is in the audit log.
type uncounted struct{}

var _ metrics.Recorder = uncounted{}

// RecordEvaluation implements metrics.Recorder.
func (uncounted) RecordEvaluation(metrics.Decision, api.LevelVersion, metrics.Mode, api.Attributes) {}

// RecordExemption implements metrics.Recorder.
func (uncounted) RecordExemption(api.Attributes) {}

// RecordError implements metrics.Recorder.
func (uncounted) RecordError(bool, api.Attributes) {}
