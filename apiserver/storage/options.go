package storage

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"kontiki/watch"
)

// GetOptions of Store.Get.
type GetOptions struct {
	// ResourceVersion "" reads the newest state, consistently; "0" whatever is at hand; another
	// value a state at least as new.
	ResourceVersion string
	// Exact reads the object as it was at ResourceVersion (time travel).
	Exact bool
}

// Selection narrows a list or a watch.
type Selection struct {
	Namespace string          // "" for all (and for resources without namespaces)
	Name      string          // "" for all; needs Namespace on namespaced resources to be fast
	Labels    labels.Selector // nil for everything
	Fields    fields.Selector // nil for everything
}

// ListOptions of Store.List, with the meanings of
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions.
// Store.List refuses what has no meaning with *OptionError; the handler has checked combinations
// before that, with apimachinery's own validation, and answers them with 422.
type ListOptions struct {
	Selection
	ResourceVersion      string
	ResourceVersionMatch metav1.ResourceVersionMatch
	Limit                int64 // 0 or less for no limit
	Continue             string
}

// List is a page of objects.
type List struct {
	Items              []*watch.Object
	Revision           int64  // the list's resourceVersion
	Continue           string // "" on the last page
	RemainingItemCount *int64 // nil if not known or nothing remains
}

// CreateOptions of Store.Create.
type CreateOptions struct {
	DryRun bool // do all but the transaction
	// Beside are written in the same transaction. If one of them has changed meanwhile, the error is ErrBeside.
	Beside []*Beside
}

// UpdateOptions of Store.Update.
type UpdateOptions struct {
	// UID and ResourceVersion, if set, must be those of the current object; else *PreconditionError.
	UID             string
	ResourceVersion string
	// From is the resourceVersion that the change is meant for, if it can be for no other: an error of it is final
	// once the current object is newer than that. Without it an error is only believed of the newest object.
	From string
	// CreateMissing calls the update func with nil if there is no object, and creates what it returns.
	CreateMissing bool
	DryRun        bool
	// Beside, if set, is asked after each call of the change what is to be written in the same transaction.
	// If one of them has changed meanwhile, the change is called again.
	Beside func() []*Beside
}

// Result is what became of a write.
type Result struct {
	// Object as it is now; after a deletion the last state, with the deletion's resourceVersion.
	Object  *watch.Object
	Created bool
	Deleted bool
	// Changed is false if the new object equals the stored one: nothing was written, and there is no
	// new revision. Created and Deleted imply Changed.
	Changed bool
}

// WatchOptions of Store.Watch.
type WatchOptions struct {
	Selection
	// ResourceVersion "" or "0" starts with the present state, as ADDED events (newest or any);
	// another value starts with the change after it.
	ResourceVersion string
	// SendInitialEvents overrides that: true sends the present state (at least as new as
	// ResourceVersion) and a bookmark that ends it; false sends none of it.
	SendInitialEvents *bool
	// Bookmarks asks for a bookmark about every minute. The one that ends the initial events is
	// sent with SendInitialEvents in any case.
	Bookmarks bool
}
