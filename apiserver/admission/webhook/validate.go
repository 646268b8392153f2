package webhook

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"kontiki/apiserver/admission"
	"kontiki/apiserver/admission/dynamic"
)

// Validator is the plugin ValidatingAdmissionWebhook.
func (w *Webhooks) Validator() admission.Validator { return validator{w} }

type validator struct{ w *Webhooks }

// call is one hook that is to be asked.
type call struct {
	hook  *hook
	match dynamic.Match
	view  *dynamic.View
}

// Validate implements admission.Validator: all hooks are asked at the same time, and all answers are awaited. Of several
// refusals the client sees that of the first hook in order.
func (v validator) Validate(ctx context.Context, r *admission.Request) error {
	if dynamic.Exempt(r) {
		return nil
	}
	now, err := v.w.current.Get(ctx)
	if err != nil || len(now.validating) == 0 {
		return err
	}
	calls, err := v.calls(ctx, now.validating, r)
	if err != nil || len(calls) == 0 {
		return err
	}
	if ctx.Err() != nil {
		return timedOut()
	}
	refusals := make([]error, len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		all.Go(func() { refusals[i] = v.ask(ctx, i, c, r) })
	}
	all.Wait()
	for _, refusal := range refusals {
		if refusal != nil {
			return refusal
		}
	}
	return nil
}

// calls are the hooks that the request matches, each with the request as it wants to see it.
func (v validator) calls(ctx context.Context, hooks []*hook, r *admission.Request) ([]call, error) {
	views := dynamic.NewViews(r, v.w.config.Matcher.Versions)
	var out []call
	for _, h := range hooks {
		view, match, ok, err := h.match(ctx, v.w, r, views)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, call{h, match, view})
		}
	}
	return out, nil
}

// ask asks one hook. A panic is that hook's failure alone.
func (v validator) ask(ctx context.Context, index int, c call, r *admission.Request) (err error) {
	failedOpen := func() {
		r.Annotate(fmt.Sprintf("failed-open.validating.webhook.admission.k8s.io/round_0_index_%d", index), c.hook.name)
	}
	defer func() {
		if p := recover(); p != nil {
			v.w.config.Log.Error("panic while asking a webhook", "webhook", c.hook.name, "panic", p, "stack", string(debug.Stack()))
			err = v.w.verdict(ctx, c.hook, failed(c.hook.name, "panic: %v", p), failedOpen)
		}
	}()
	_, err = c.hook.call(ctx, r, c.match, c.view, false)
	return v.w.verdict(ctx, c.hook, err, failedOpen)
}
