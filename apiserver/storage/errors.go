package storage

import (
	"errors"
	"fmt"

	"kontiki/watch"
)

// Watches and reads of old revisions also fail with *watch.ExpiredError, and every read may fail
// with *watch.CorruptError. Errors of the KV itself pass through, wrapped.
var (
	// ErrNotFound: there is no object under that name.
	ErrNotFound = errors.New("storage: object does not exist")
	// ErrExists: an object of that name exists already.
	ErrExists = errors.New("storage: object exists already")
	// ErrBeside: what was to be written beside an object has changed meanwhile.
	ErrBeside = errors.New("storage: what is written beside the object has changed meanwhile")
	// ErrContinueToken: the continue token was not made by this server, or not for this list.
	ErrContinueToken = errors.New("invalid continue token: continue key is not valid")
	// ErrInvalidName: a name or namespace that cannot be part of a key.
	ErrInvalidName = errors.New("storage: name cannot be part of a key")
)

// PreconditionError says which precondition of a write the object does not meet. The object is
// untouched. The API answers with 409 Conflict.
type PreconditionError struct {
	Field     string // "UID" or "ResourceVersion"
	Want, Got string
}

// Error is worded as Kubernetes words it.
func (e *PreconditionError) Error() string {
	return fmt.Sprintf("Precondition failed: %s in precondition: %v, %s in object meta: %v", e.Field, e.Want, e.Field, e.Got)
}

// FutureRevisionError says that the store has not reached a revision that was asked for, after a
// wait. The API answers 504 Timeout with cause ResourceVersionTooLarge.
type FutureRevisionError struct {
	Requested, Current int64
}

// Error is worded as Kubernetes words it.
func (e *FutureRevisionError) Error() string {
	return fmt.Sprintf("Too large resource version: %d, current: %d", e.Requested, e.Current)
}

// ExpiredListError says that the revision a page was to be read at is compacted. Continue is a token
// that goes on from the same place in the newest state (410 Expired, metadata.continue).
type ExpiredListError struct {
	watch.ExpiredError
	Continue string // empty if the request had no continue token
}

// Error tells what the client can do.
func (e *ExpiredListError) Error() string {
	if e.Continue == "" {
		return "The resourceVersion for the provided list is too old. " + e.ExpiredError.Error()
	}
	return "The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve " +
		"the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were " +
		"created, modified, or deleted between the time the first chunk was returned and now may show up in the list."
}

// OptionError is a resourceVersion, resourceVersionMatch or limit that means nothing (400).
type OptionError struct {
	Option, Value, Reason string
}

// Error names the option, its value and why it is refused.
func (e *OptionError) Error() string {
	if e.Option == "" { // of a combination
		return e.Reason
	}
	return fmt.Sprintf("%s %q: %s", e.Option, e.Value, e.Reason)
}

// FieldError says that a field selector asks for a field that the resource does not offer (400).
type FieldError struct {
	Field string
	Plain bool // the resource offers name and namespace alone
}

// Error is worded as Kubernetes words it.
func (e *FieldError) Error() string {
	if e.Plain {
		return fmt.Sprintf("%q is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", e.Field)
	}
	return fmt.Sprintf("field label not supported: %s", e.Field)
}

// ClaimError says that something the object would hold exclusively is held by another object.
type ClaimError struct {
	Claim  string // as Strategy.Claims named it
	Holder string // the store key of the object that holds it
}

// Error names the claim and its holder.
func (e *ClaimError) Error() string {
	return fmt.Sprintf("%s is already allocated to %s", e.Claim, e.Holder)
}
