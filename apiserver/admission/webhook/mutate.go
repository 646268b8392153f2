package webhook

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	kjson "sigs.k8s.io/json"

	"kontiki/apiserver/admission"
	"kontiki/apiserver/admission/dynamic"
)

// Mutator is the plugin MutatingAdmissionWebhook.
func (w *Webhooks) Mutator() admission.Mutator { return mutator{w} }

type mutator struct{ w *Webhooks }

// Mutate implements admission.Mutator: hooks are asked one after the other, each about what those before it have made.
func (m mutator) Mutate(ctx context.Context, r *admission.Request) error {
	if dynamic.Exempt(r) {
		return nil
	}
	now, err := m.w.current.Get(ctx)
	if err != nil || len(now.mutating) == 0 {
		return err
	}
	state := dynamic.ReinvocationOf[string](r, MutatingPlugin)
	state.Begin(r)
	views := dynamic.NewViews(r, m.w.config.Matcher.Versions)
	for i, h := range now.mutating {
		view, match, ok, err := h.match(ctx, m.w, r, views)
		if err != nil {
			return err
		}
		if !ok || state.Skip(r, h.key) {
			continue
		}
		changed, err := m.ask(ctx, h, i, r, match, view, views)
		if err != nil {
			return err
		}
		state.Done(r, h.key, h.reinvoke, changed)
	}
	state.End(r)
	return nil
}

// ask asks one hook and applies its patch. Audit events say that it was asked, and whether it changed anything.
func (m mutator) ask(ctx context.Context, h *hook, index int, r *admission.Request, match dynamic.Match, view *dynamic.View, views *dynamic.Views) (changed bool, err error) {
	const prefix = "mutation.webhook.admission.k8s.io/"
	round := 0
	if r.SecondRound() {
		round = 1
	}
	place := fmt.Sprintf("round_%d_index_%d", round, index)
	answer, err := h.call(ctx, r, match, view, true)
	if err == nil {
		changed, err = h.apply(answer, match.Kind, view, views, r.Warn)
	}
	r.Annotate(prefix+place, mutationNote(h, changed))
	err = m.w.verdict(ctx, h, err, func() { r.Annotate("failed-open."+prefix+place, h.name) })
	return changed, err
}

// mutationNote is the value of an audit annotation.
func mutationNote(h *hook, mutated bool) string {
	note, err := json.Marshal(struct {
		Configuration string `json:"configuration"`
		Webhook       string `json:"webhook"`
		Mutated       bool   `json:"mutated"`
	}{h.configuration, h.name, mutated})
	if err != nil {
		return "" // strings and a bool can be written
	}
	return string(note)
}

// apply patches the request's object as the hook wishes.
func (h *hook) apply(answer *admissionv1.AdmissionResponse, kind schema.GroupVersionKind, view *dynamic.View, views *dynamic.Views, warn func(string)) (changed bool, err error) {
	if len(answer.Patch) == 0 {
		return false, nil
	}
	if *answer.PatchType != admissionv1.PatchTypeJSONPatch { // readReview lets none pass without a type
		return false, failed(h.name, "unsupported patch type %q", *answer.PatchType)
	}
	patch, err := jsonpatch.DecodePatch(answer.Patch)
	if err != nil {
		return false, failed(h.name, "received undecodable patch in webhook response: %w", err)
	}
	if len(patch) == 0 {
		return false, nil
	}
	before := view.VersionedObject.Object()
	if before == nil {
		return false, internal(fmt.Errorf("admission webhook %q attempted to modify the object, which is not supported for this operation", h.name))
	}
	after, err := patched(patch, before, kind, views)
	if err != nil {
		return false, internal(err)
	}
	changed = !equality.Semantic.DeepEqual(before, after)
	keepOwners(before, after, warn)
	if err := views.Replace(after, kind); err != nil {
		return false, internal(err)
	}
	return changed, nil
}

// patched is a new object of the kind.
func patched(patch jsonpatch.Patch, obj runtime.Object, kind schema.GroupVersionKind, views *dynamic.Views) (runtime.Object, error) {
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	if text, err = patch.Apply(text); err != nil {
		return nil, err
	}
	out, err := views.New(kind)
	if err != nil {
		return nil, err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, out); err != nil {
		return nil, err
	}
	out.GetObjectKind().SetGroupVersionKind(kind) // which is not for a patch to say
	return out, nil
}

// keepOwners undoes a change of metadata.managedFields that leaves them in no state to be used.
func keepOwners(before, after runtime.Object, warn func(string)) {
	was, err := meta.Accessor(before)
	if err != nil {
		return // a body without metadata
	}
	is, err := meta.Accessor(after)
	if err != nil {
		return
	}
	if err := managedfields.ValidateManagedFields(is.GetManagedFields()); err != nil {
		is.SetManagedFields(was.GetManagedFields())
		warn(fmt.Sprintf(".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: %v", err))
	}
}
