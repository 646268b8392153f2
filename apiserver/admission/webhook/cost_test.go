package webhook

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"kontiki/apiserver/admission"
	"kontiki/apiserver/admission/dynamic"
	"kontiki/apiserver/admission/policy"
)

// A cluster without webhooks and policies does not pay for them.
func TestNothingConfiguredCostsNothing(t *testing.T) {
	hooks := New(Config{Matcher: &dynamic.Matcher{}, Load: func(context.Context) (Configurations, error) { return Configurations{}, nil }})
	policies := policy.New(policy.Config{Matcher: &dynamic.Matcher{}, Load: func(context.Context) (policy.Objects, error) { return policy.Objects{}, nil }})
	r := &admission.Request{Operation: admission.Create, Object: &corev1.Pod{}}
	ctx := t.Context()
	mutators, validators := []admission.Mutator{policies.Mutator(), hooks.Mutator()}, []admission.Validator{policies.Validator(), hooks.Validator()}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, m := range mutators {
			if err := m.Mutate(ctx, r); err != nil {
				panic(err)
			}
		}
		for _, v := range validators {
			if err := v.Validate(ctx, r); err != nil {
				panic(err)
			}
		}
	}))
}
