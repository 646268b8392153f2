package watch

// EventType is the type field of a watch frame.
type EventType string

// The event types of the Kubernetes API. An ERROR frame is made of the error that ends a Watcher.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
	Bookmark EventType = "BOOKMARK"
)

// Event is one thing that a watcher tells its client.
type Event struct {
	Type EventType
	// Object is the new state. For Deleted it is the last state that the watcher's selection saw,
	// with the resourceVersion of the change that ended it. It is nil for Bookmark.
	Object *Object
	// Revision is the object's resourceVersion, and a bookmark's.
	Revision int64
	// InitialEventsEnd marks the bookmark after the initial events (annotation
	// "k8s.io/initial-events-end": "true").
	InitialEventsEnd bool
}
