package policy

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/admission"
	"kontiki/apiserver/admission/dynamic"
)

// invocation is one evaluation of a policy: through one binding, with one parameter or none.
type invocation[P any] struct {
	policy  P
	binding *binding // nil if err is about the policy
	match   dynamic.Match
	param   runtime.Object // nil if there is none
	err     error          // why there is nothing to evaluate; decided on by the failure policy
}

// invocations are those that a request meets, in order.
func invocations[P any](ctx context.Context, p *Policies, r *admission.Request, policies []bound[P], commonOf func(P) *common) []invocation[P] {
	var out []invocation[P]
	for _, one := range policies {
		c := commonOf(one.policy)
		match, ok, err := p.config.Matcher.Match(ctx, r, c.criteria)
		if err == nil && ok {
			err = p.usable(c)
		}
		if err != nil {
			out = append(out, invocation[P]{policy: one.policy, err: fmt.Errorf("failed to configure policy: %w", err)})
			continue
		}
		if !ok {
			continue
		}
		for _, b := range one.bindings {
			params, ok, err := p.bind(ctx, r, c, b)
			if err != nil {
				out = append(out, invocation[P]{policy: one.policy, binding: b, err: fmt.Errorf("failed to configure binding: %w", err)})
				continue
			}
			if !ok {
				continue
			}
			for _, param := range params {
				out = append(out, invocation[P]{policy: one.policy, binding: b, match: match, param: param})
			}
		}
	}
	return out
}

// usable says whether a policy can be evaluated at all.
func (p *Policies) usable(c *common) error {
	if c.broken != nil || c.params == nil {
		return c.broken
	}
	if _, _, ok := p.config.Params(*c.params); !ok {
		return fmt.Errorf("failed to find resource referenced by paramKind: '%v'", *c.params)
	}
	return nil
}

// bind returns the parameters of a binding, if the request meets it: one that is nil, if the policy goes without.
func (p *Policies) bind(ctx context.Context, r *admission.Request, c *common, b *binding) (params []runtime.Object, ok bool, err error) {
	if b.broken != nil {
		return nil, false, b.broken
	}
	if _, ok, err = p.config.Matcher.Match(ctx, r, b.criteria); err != nil || !ok {
		return nil, false, err
	}
	params, err = p.paramsOf(ctx, c, b.ref, r.Namespace)
	return params, true, err
}
