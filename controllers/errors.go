package controllers

import "errors"

var (
	// ErrConfig is returned by Run for a Config that lacks what it cannot do without.
	ErrConfig = errors.New("controllers: incomplete config")
	// ErrPanic is what a request fails with when its reconciler panicked.
	ErrPanic = errors.New("controllers: reconciler panicked")
	// ErrReplaced means that an object of the same name but another uid has taken the place of the one being reconciled.
	ErrReplaced = errors.New("controllers: object was replaced by another of the same name")
	// ErrDeleting means that an object may not adopt or create because it is being deleted.
	ErrDeleting = errors.New("controllers: object is being deleted")
	// ErrHashCollision means that another ReplicaSet has the name that the pod template's hash gave; the next try uses
	// another hash.
	ErrHashCollision = errors.New("controllers: pod template hash collides")
	// ErrNotApproved means that a node's signing request is left to people, see csrApproving.
	ErrNotApproved = errors.New("controllers: signing request is not approved")
	// ErrNotSignable means that a signing request asks for what its signer does not sign.
	ErrNotSignable = errors.New("controllers: signing request cannot be granted")
	// ErrUnknownKind means that an owner reference names a kind that discovery does not have (yet, or any more).
	ErrUnknownKind = errors.New("controllers: kind of the owner is not served")
)
