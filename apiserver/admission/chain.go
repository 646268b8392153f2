package admission

import (
	"context"
	"fmt"
	"maps"
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
	// Disabled are names of plugins that do not run, Enabled of those that run although they would not otherwise.
	Disabled, Enabled []string
	// Plugins are configurations by the names of plugins: see ParseConfiguration.
	Plugins map[string][]byte
	// Dynamic run after those of this package: webhooks and policies, which see what the cluster itself has decided.
	Dynamic []Plugin
	// Last run after all others.
	Last []Plugin
}

// builtin are the plugins of this package in the order in which they run, which is kube-apiserver's. Those that are off there
// unless somebody asks for them are off here.
func builtin(cluster Cluster, config Config) ([]builtinPlugin, error) {
	podSecurity, err := newPodSecurity(cluster, config.Plugins["PodSecurity"])
	if err != nil {
		return nil, err
	}
	return []builtinPlugin{
		{name: "NamespaceLifecycle", impl: namespaceLifecycle{cluster}},
		{name: "LimitRanger", impl: limitRanger{cluster}},
		{name: "ServiceAccount", impl: serviceAccount{cluster}},
		{name: "NodeRestriction", impl: nodeRestriction{cluster}},
		{name: "TaintNodesByCondition", impl: taintNodes{}},
		{name: "AlwaysPullImages", impl: alwaysPullImages{}, off: true},
		{name: "PodSecurity", impl: podSecurity},
		{name: "Priority", impl: priority{cluster}},
		{name: "DefaultTolerationSeconds", impl: defaultTolerationSeconds{}},
		{name: "ExtendedResourceToleration", impl: extendedResourceToleration{}, off: true},
		{name: "DefaultStorageClass", impl: defaultStorageClass{cluster}},
		{name: "StorageObjectInUseProtection", impl: storageProtection{}},
		{name: "OwnerReferencesPermissionEnforcement", impl: ownerReferences{cluster}, off: true},
		{name: "PersistentVolumeClaimResize", impl: claimResize{cluster}},
		{name: "RuntimeClass", impl: runtimeClass{cluster}},
		{name: "CertificateApproval", impl: certificateApproval{cluster}},
		{name: "CertificateSigning", impl: certificateSigning{cluster}},
		{name: "ClusterTrustBundleAttest", impl: trustBundleAttest{cluster}},
		{name: "CertificateSubjectRestriction", impl: certificateSubject{}},
		{name: "DefaultIngressClass", impl: defaultIngressClass{cluster}},
		{name: "DenyServiceExternalIPs", impl: denyExternalIPs{}, off: true},
		{name: "PodTopologyLabels", impl: podTopology{cluster}},
		{name: "PodResizeValidator", impl: podResize{cluster}},
		// Webhooks and policies come next (Config.Dynamic); quotas are charged when nobody refuses any more.
		{name: "ResourceQuota", impl: resourceQuota{cluster}},
	}, nil
}

// builtinPlugin is a plugin of this package.
type builtinPlugin struct {
	name string
	impl any
	off  bool // unless it is enabled
}

// New returns the plugins that are on. The error is a name that no plugin has, or a configuration that is none.
func New(cluster Cluster, config Config) (*Chain, error) {
	own, err := builtin(cluster, config)
	if err != nil {
		return nil, err
	}
	c := &Chain{}
	for _, p := range own {
		c.add(Plugin{p.name, p.impl}, config.on(p.name, !p.off))
	}
	for _, p := range slices.Concat(config.Dynamic, config.Last) {
		c.add(p, config.on(p.Name, true))
	}
	return c, config.check(c.names)
}

// Names are those of the plugins of this package: to switch off all of them, in a bench.
func Names() (names []string) {
	own, err := builtin(nil, Config{})
	if err != nil {
		panic(err) // without a configuration there is nothing wrong with it
	}
	for _, p := range own {
		names = append(names, p.name)
	}
	return names
}

// dynamicNames are those of Config.Dynamic in a server.
var dynamicNames = []string{"MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook"}

// Check finds what is wrong with a configuration before there is a server.
func (c Config) Check() error {
	if _, err := builtin(nil, c); err != nil {
		return err
	}
	return c.check(slices.Sorted(slices.Values(slices.Concat(Names(), dynamicNames))))
}

// add takes a plugin in, if it is on.
func (c *Chain) add(p Plugin, on bool) {
	c.names = append(c.names, p.Name)
	if !on {
		return
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

// on says whether a plugin runs.
func (c Config) on(name string, byDefault bool) bool {
	return !slices.Contains(c.Disabled, name) && (byDefault || slices.Contains(c.Enabled, name))
}

// check refuses names that no plugin has, and plugins that are on and off.
func (c Config) check(names []string) error {
	for _, name := range slices.Concat(c.Disabled, c.Enabled, slices.Sorted(maps.Keys(c.Plugins))) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("there is no admission plugin %q, only %s", name, strings.Join(names, ", "))
		}
	}
	for _, name := range c.Disabled {
		if slices.Contains(c.Enabled, name) {
			return fmt.Errorf("admission plugin %q is enabled and disabled", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Plugins)) {
		if !slices.Contains(configurable, name) {
			return fmt.Errorf("admission plugin %q takes no configuration, only %s", name, strings.Join(configurable, ", "))
		}
	}
	return nil
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
