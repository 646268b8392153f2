package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Plugin is a plugin with its name, by which it can be switched off.
type Plugin struct {
	Name string
	Impl any // a Mutator, a Validator, a Charger, or several of them
}

// Config of a Chain.
type Config struct {
	// Disabled are names of plugins that do not run.
	Disabled []string
	// Dynamic run after those of this package: webhooks and policies, which see what the cluster itself has decided.
	Dynamic []Plugin
	// Last run after all others.
	Last []Plugin
}

// builtin are the plugins of this package in the order in which they run.
func builtin(objects Objects) []Plugin {
	return []Plugin{
		{"ServiceAccount", serviceAccount{objects}},
		{"LimitRanger", limitRanger{objects}},
		{"Priority", priority{objects}},
		{"DefaultTolerationSeconds", defaultTolerationSeconds{}},
		{"RuntimeClass", runtimeClass{objects}},
		{"DefaultStorageClass", defaultStorageClass{objects}},
		{"DefaultIngressClass", defaultIngressClass{objects}},
		{"NodeRestriction", nodeRestriction{}},
		{"ResourceQuota", resourceQuota{objects}},
	}
}

// New returns the plugins in the order in which they run, but for those that are disabled. The error is a name that no
// plugin has.
func New(objects Objects, config Config) (*Chain, error) {
	all := slices.Concat(builtin(objects), config.Dynamic, config.Last)
	c := &Chain{}
	for _, p := range all {
		c.names = append(c.names, p.Name)
		if slices.Contains(config.Disabled, p.Name) {
			continue
		}
		if m, ok := p.Impl.(Mutator); ok {
			c.mutators = append(c.mutators, m)
		}
		if v, ok := p.Impl.(Validator); ok {
			c.validators = append(c.validators, v)
		}
		if ch, ok := p.Impl.(Charger); ok {
			c.chargers = append(c.chargers, ch)
		}
	}
	for _, name := range config.Disabled {
		if !slices.Contains(c.names, name) {
			return nil, fmt.Errorf("there is no admission plugin %q, only %s", name, strings.Join(c.names, ", "))
		}
	}
	return c, nil
}

// Chain is the plugins that are on. It is safe for concurrent use.
type Chain struct {
	names      []string // of all, those that are off too
	mutators   []Mutator
	validators []Validator
	chargers   []Charger
}

// Mutate completes the request's object, in two rounds if need be (reinvocation.go).
func (c *Chain) Mutate(ctx context.Context, r *Request) error {
	err := c.mutateOnce(ctx, r)
	if err != nil || !r.rounds.again {
		return err
	}
	r.rounds.second = true
	return c.mutateOnce(ctx, r)
}

func (c *Chain) mutateOnce(ctx context.Context, r *Request) error {
	for _, m := range c.mutators {
		if err := m.Mutate(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// Validate refuses the request, or does not.
func (c *Chain) Validate(ctx context.Context, r *Request) error {
	for _, v := range c.validators {
		if err := v.Validate(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// Charge writes what is to be written beside the object, or refuses the request.
func (c *Chain) Charge(ctx context.Context, r *Request) error {
	for _, ch := range c.chargers {
		if err := ch.Charge(ctx, r); err != nil {
			return err
		}
	}
	return nil
}
