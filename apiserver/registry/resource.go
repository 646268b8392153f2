package registry

import (
	"context"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Resource is one row of the table that the API server is made of: everything the generic handlers,
// discovery, OpenAPI, tables and storage need to know of one resource in one API version.
// A new kind is a new row. Custom resources are rows that arrive at run time.
type Resource struct {
	schema.GroupVersionResource        // Resource is the plural name in the URL
	Singular                    string // "pod"
	Kind                        string // "Pod"
	ShortNames, Categories      []string
	Namespaced                  bool
	Verbs                       []string // nil means every verb

	New     func() runtime.Object // an empty object of this version
	NewList func() runtime.Object // an empty list of this version; nil for a kind that has none

	// Answers is set for kinds that are not stored: then Prefix is empty.
	Answers *Answers

	// Prefix is where the objects live in the store, without a trailing slash: "/registry/pods".
	Prefix string
	// Hub is nil if objects are stored in this version. Otherwise it is the row they are stored
	// under, and ToHub and FromHub convert between the two (deep: the results share nothing).
	Hub            *Resource
	ToHub, FromHub func(runtime.Object) (runtime.Object, error)
	// FromHubAll is FromHub for many objects, where that costs less than one after the other: nil where it does not.
	FromHubAll func([]runtime.Object) ([]runtime.Object, error)

	Strategy     Strategy
	Subresources []Subresource

	// Columns and Row make the Table that kubectl prints. Nil means name and age.
	Columns []metav1.TableColumnDefinition
	Row     func(obj runtime.Object, now time.Time) []any

	// ListKind is the kind of lists; empty means Kind and "List".
	ListKind string
	// Deprecated is a warning for every request, if it is not empty.
	Deprecated string
	// Model is the OpenAPI schema of kinds that have no Go type, as version 2 or 3 has it. Refer makes references to the
	// definitions of Go types. It is made anew for each call.
	Model func(v2 bool, refer func(goType reflect.Type) spec.Schema) (*spec.Schema, error)
	// Digest is equal for rows of which documents say the same, on every server; only rows with a Model have one.
	Digest string
	// Gone is closed when the row has left the table: watches end. nil never is.
	Gone <-chan struct{}

	// Fields returns the field selector attributes beyond metadata.name and metadata.namespace. Its
	// keys must be the same for every object; nil means there are none.
	Fields func(obj runtime.Object) fields.Set
}

// Strategy is what is special about writing one resource. Every func may be nil. The generic path
// has done, or does, the rest: names, uids, timestamps, metadata validation, generation (which
// counts changes outside metadata and status), status reset on the main resource, no-op detection.
type Strategy struct {
	// Default fills in what the user left out. It runs on every decoded request body and on every
	// object read from the store, so it must be deterministic and idempotent.
	Default func(obj runtime.Object)
	// DefaultedByHub is set where FromHub fills in what objects from the store lack, and Default is for bodies alone: defaults
	// of custom resources are those of the version that an object is stored in.
	DefaultedByHub bool

	// Coerce makes of what was decoded an object of the kind, where the Go type does not do that already: it drops what the
	// kind does not have, and returns the paths of it.
	Coerce func(obj runtime.Object) (unknown []string, err error)

	// CheckCreate refuses to create anything, with an API status error (custom resources whose definition ends).
	CheckCreate func(name string) error

	// PrepareForCreate and PrepareForUpdate drop what a client may not set and fill in what the
	// server decides, before validation. The generic path has handled status and generation.
	PrepareForCreate func(ctx context.Context, obj runtime.Object)
	PrepareForUpdate func(ctx context.Context, obj, old runtime.Object)

	// Validate and ValidateUpdate return every fault at once, with Kubernetes' paths and causes. On an
	// update both run, Validate first, and the faults of both are reported (JudgeUpdate).
	Validate       func(ctx context.Context, obj runtime.Object) field.ErrorList
	ValidateUpdate func(ctx context.Context, obj, old runtime.Object) field.ErrorList
	// declaredUpdate are the rules that Kubernetes declares on the type (declared.go); nil if it has none.
	declaredUpdate func(ctx context.Context, obj, old runtime.Object) field.ErrorList

	// Resets are the paths that a create or update leaves to the server, and nobody owns therefore, beside the
	// status of a kind that has it as a subresource.
	Resets []string

	// AnyFinalizer lets finalizers be named without a path: those of custom resources are, and the one that
	// Kubernetes itself puts on their definitions.
	AnyFinalizer bool

	// UpdateRulesOnly is for kinds of which Kubernetes judges nothing but the change on an update: Validate does
	// not run then.
	UpdateRulesOnly bool

	// ValidateName judges a name, or with prefix set a generateName; nil wants a DNS subdomain.
	ValidateName func(name string, prefix bool) []string

	// GenerateName makes a name of a generateName; nil adds random letters.
	GenerateName func(prefix string) string

	// Warnings returns texts for the Warning header of a create (old is nil) or update.
	Warnings func(ctx context.Context, obj, old runtime.Object) []string

	// NoGeneration is set for kinds on which Kubernetes leaves metadata.generation alone (services,
	// configmaps and most others of the core group).
	NoGeneration bool

	// KeepStatusOnCreate lets a create carry a status (a node registers itself with one). An update
	// of the main resource never changes the status, if there is a status subresource.
	KeepStatusOnCreate bool

	// NeedsResourceVersion refuses an update without a resourceVersion (leases, webhook configurations and some
	// others, and custom resources).
	NeedsResourceVersion bool

	// AllowCreateOnUpdate lets PUT create the object, as Kubernetes allows for leases and some others.
	AllowCreateOnUpdate bool

	// GracePeriod decides the deletion grace of obj; nil, or 0, deletes at once. asked is the
	// client's wish, or nil. Pods wait for their node agent this way.
	GracePeriod func(obj runtime.Object, asked *int64) int64

	// KeepOnDelete says that obj must stay, marked as being deleted, until somebody else finishes
	// it (a namespace until it is empty): like a finalizer that is not in the object's metadata.
	KeepOnDelete func(obj runtime.Object) bool

	// PrepareForDelete changes obj in the write that marks it as being deleted, if it stays for now
	// (a namespace turns Terminating).
	PrepareForDelete func(obj runtime.Object)

	// OrphanByDefault lets the dependents of a deleted object live on, if neither the client nor a finalizer says
	// otherwise: so it was for kinds that are older than garbage collection.
	OrphanByDefault bool

	// DeleteWarning is for the Warning header of a deletion that does not say what becomes of dependents.
	DeleteWarning string

	// ReturnDeleted makes a DELETE answer with the object instead of a Status, as Kubernetes does for
	// some kinds.
	ReturnDeleted bool

	// Claims returns the store keys that obj holds exclusively, below "/kontiki/claims/": a cluster
	// IP, a node port, a pod CIDR. They are written and removed in the transaction that writes or
	// removes the object, so nothing is allocated twice and nothing leaks.
	Claims func(obj runtime.Object) []string
	// ShowClaim returns the object, if any, by which users see a claim of obj (the IPAddress of a cluster IP), with
	// the key that it is stored under. It is written and removed in the same transaction as the claim.
	ShowClaim func(obj runtime.Object, claim string) (key string, shown runtime.Object)
	// Allocate fills the fields that the server must choose. taken reports whether a claim is held
	// in the store, also by old itself. It runs again, on a fresh copy, when the transaction finds a
	// claim taken after all. old is nil on create. Errors are API status errors.
	Allocate func(ctx context.Context, obj, old runtime.Object, taken func(claim string) bool) error

	// TTL makes objects vanish on their own (events); nil keeps them.
	TTL time.Duration
}

// Subresource is one row below a Resource: "status", "scale", "binding", "log".
// Exactly one of Update, Project, Create and Connect is set.
type Subresource struct {
	Name  string
	Kind  schema.GroupVersionKind // what travels in the body
	New   func() runtime.Object   // an empty body; nil if there is none
	Verbs []string                // of get, update, patch, create

	// Update: body and parent are of one kind (status, ephemeralcontainers, resize). It copies into
	// obj, which starts as the request's object, everything this subresource may not change from old.
	Update func(ctx context.Context, obj, old runtime.Object)
	// Resets are the paths ("metadata.labels") that Update copies from old: who writes them here does not own them.
	// Owns is the other way about: all but these paths is copied; a "*" in them is any item of a list.
	Resets, Owns []string
	// Validate takes the place of the strategy's Validate and ValidateUpdate for an Update; nil keeps those.
	Validate func(ctx context.Context, obj, old runtime.Object) field.ErrorList
	// Project: the body is a view of the parent (scale).
	Project *Projection
	// Create: the body is a command to the parent (binding, eviction); it changes obj accordingly
	// and returns an API status error to refuse.
	Create func(ctx context.Context, obj, body runtime.Object) error
	// DeleteOptions is set beside Create where the command is to delete (eviction): once Create has
	// accepted, the object is deleted with these options (nil: the defaults) instead of being written.
	DeleteOptions func(body runtime.Object) *metav1.DeleteOptions
	// Answer: the body is a question about the parent, which the server answers; nothing is written (token).
	Answer func(ctx context.Context, server Server, parent, body runtime.Object) (runtime.Object, error)
	// Connect: a stream to the node that runs the object (log, exec, attach, portforward, proxy).
	Connect bool
}

// Projection shows a part of an object as another kind and writes it back.
type Projection struct {
	Get func(parent runtime.Object) (runtime.Object, error)
	Set func(parent, view runtime.Object) error
	Row *Resource // the columns of the view; nothing else of it is used
	// Replicas is where the parent has what the view calls spec.replicas; nil means the same.
	Replicas []string
}

// GroupVersionKind of the row's objects.
func (r *Resource) GroupVersionKind() schema.GroupVersionKind {
	return r.GroupVersion().WithKind(r.Kind)
}

// Default fills in what a user left out.
func (r *Resource) Default(obj runtime.Object) {
	if r.Strategy.Default != nil {
		r.Strategy.Default(obj)
	}
}

// Subresource returns the subresource of that name, or nil.
func (r *Resource) Subresource(name string) *Subresource {
	for i := range r.Subresources {
		if r.Subresources[i].Name == name {
			return &r.Subresources[i]
		}
	}
	return nil
}
