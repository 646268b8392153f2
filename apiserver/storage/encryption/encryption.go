package encryption

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
)

// Config of an Encryption.
type Config struct {
	// Path is the file with the EncryptionConfiguration. Empty: nothing is encrypted.
	Path string
	// Reload has the file read again when it changes.
	Reload bool
	// ReloadPeriod is how often that is looked at; 0 means 10 s.
	ReloadPeriod time.Duration
	Log          *slog.Logger // nil discards
}

// Encryption encrypts what goes into the store, and decrypts what comes out. A nil Encryption encrypts nothing. It is safe for
// concurrent use.
type Encryption struct {
	config  Config
	log     *slog.Logger
	reloads *prometheus.CounterVec
	current atomic.Pointer[loaded]

	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	plugins map[string]*kms
}

// loaded is a file that is in force.
type loaded struct {
	data  []byte
	rules []rule
}

// rule is what the file says about some resources.
type rule struct {
	resources []string
	providers providers
}

// Open reads the file. A KMS plugin that does not answer is no error: it may start later. The caller must Close the
// Encryption; it is nil if the Config names no file.
func Open(config Config) (*Encryption, error) {
	if config.Path == "" {
		return nil, nil
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.ReloadPeriod == 0 {
		config.ReloadPeriod = 10 * time.Second
	}
	e := &Encryption{config: config, log: config.Log, plugins: map[string]*kms{},
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_encryption_config_controller_automatic_reloads_total", Help: "Changes of the encryption configuration, by whether they were taken over.",
		}, []string{"status"})}
	var ctx context.Context
	ctx, e.cancel = context.WithCancel(context.Background())
	file, data, err := read(config.Path)
	if err == nil {
		err = e.use(ctx, file, data)
	}
	if err != nil {
		e.Close()
		return nil, err
	}
	if config.Reload {
		e.done.Go(func() { e.follow(ctx) })
	}
	return e, nil
}

// Close ends what Open has started. Nothing may be encrypted or decrypted any more.
func (e *Encryption) Close() {
	if e == nil {
		return
	}
	e.cancel()
	e.done.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, plugin := range e.plugins {
		plugin.close()
	}
}

// Collectors are the Encryption's metrics.
func (e *Encryption) Collectors() []prometheus.Collector {
	if e == nil {
		return nil
	}
	return []prometheus.Collector{e.reloads}
}

// use puts a file in force that has been checked.
func (e *Encryption) use(ctx context.Context, file *apiserverv1.EncryptionConfiguration, data []byte) error {
	next := &loaded{data: data}
	for _, r := range file.Resources {
		list, err := build(r.Providers, func(c *apiserverv1.KMSConfiguration) provider { return e.plugin(ctx, c) })
		if err != nil {
			return err
		}
		next.rules = append(next.rules, rule{r.Resources, list})
	}
	e.current.Store(next)
	return nil
}

// plugin returns the KMS plugin of a configuration: the one there is, or a new one. One that a new file no longer names stays
// until Close, since what is being read may need it.
func (e *Encryption) plugin(ctx context.Context, c *apiserverv1.KMSConfiguration) *kms {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := c.Name + " " + c.Endpoint + " " + kmsTimeout(c).String()
	plugin := e.plugins[id]
	if plugin == nil {
		plugin = newKMS(ctx, c, e.log)
		e.plugins[id] = plugin
	}
	return plugin
}

// follow reads the file again when it has changed, until ctx ends. What is wrong with it is logged, and what was in force
// stays so.
func (e *Encryption) follow(ctx context.Context) {
	tick := time.NewTicker(e.config.ReloadPeriod)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		changed, err := e.reload(ctx)
		switch {
		case err != nil && err.Error() != said:
			said = err.Error()
			e.reloads.WithLabelValues("failure").Inc()
			e.log.Error("the encryption configuration has changed and cannot be used; the one before stays in force", "err", err)
		case err == nil:
			said = ""
		}
		if changed {
			e.reloads.WithLabelValues("success").Inc()
			e.log.Info("the encryption configuration has been read again", "path", e.config.Path)
		}
	}
}

func (e *Encryption) reload(ctx context.Context) (changed bool, err error) {
	file, data, err := read(e.config.Path)
	if err != nil || bytes.Equal(data, e.current.Load().data) {
		return false, err
	}
	err = e.use(ctx, file, data)
	return err == nil, err
}

// Resource encrypts and decrypts the objects of one resource, by the configuration that is in force when it does.
type Resource struct {
	encryption *Encryption // nil: nothing is encrypted
	resource   schema.GroupResource
}

// For returns what encrypts a resource.
func (e *Encryption) For(resource schema.GroupResource) Resource { return Resource{e, resource} }

// providers are nil if nothing of the resource is encrypted.
func (r Resource) providers() providers {
	if r.encryption == nil {
		return nil
	}
	for _, rule := range r.encryption.current.Load().rules {
		for _, name := range rule.resources {
			if covers(name, r.resource) {
				return rule.providers
			}
		}
	}
	return nil
}

// Seal returns what is stored under key for plain, which may be plain itself.
func (r Resource) Seal(key string, plain []byte) ([]byte, error) {
	list := r.providers()
	if list == nil {
		return plain, nil
	}
	sealed, err := list.seal(key, plain)
	if err != nil {
		return nil, fmt.Errorf("encrypt %s: %w", key, err)
	}
	return sealed, nil
}

// Open returns what Seal was given, which may be stored itself. stale says that Seal would make something else of it by
// now: with another key, another provider, or without encryption.
func (r Resource) Open(key string, stored []byte) (plain []byte, stale bool, err error) {
	list := r.providers()
	if list == nil {
		if isSealed(stored) {
			return nil, false, unreadable(stored)
		}
		return stored, false, nil
	}
	return list.open(key, stored)
}
