package mvcc

// KeyValue is one version of one key, as it stood after the transaction ModRevision.
// The byte slices are shared with the store: read them, never write them.
type KeyValue struct {
	Key            []byte
	Value          []byte
	CreateRevision int64 // revision of the put that (re-)created the key
	ModRevision    int64 // revision of the transaction that wrote this version
	Version        int64 // 1 at creation, +1 with each put; 0 in a tombstone
	Lease          int64 // lease id the key is attached to, 0 for none
}

// RangeRequest reads the keys in [Key, End). End nil means the single key Key;
// End equal to the one byte 0 means every key from Key on (etcd's convention).
type RangeRequest struct {
	Key, End  []byte
	Revision  int64 // read as of this revision; 0 means the newest
	Limit     int64 // at most so many keys, 0 for all
	KeysOnly  bool  // leave Value empty
	CountOnly bool  // leave KVs empty

	// Bounds of what is returned, inclusive; 0 is none. They do not change Count.
	MinModRevision, MaxModRevision       int64
	MinCreateRevision, MaxCreateRevision int64
	// SortBy and Descending say in which order keys are returned, before Limit cuts the answer short.
	// Keys that are equal in SortBy stand in key order.
	SortBy     SortTarget
	Descending bool
}

// SortTarget is what keys are sorted by.
type SortTarget uint8

// The attributes that a range can be sorted by.
const (
	SortByKey SortTarget = iota
	SortByVersion
	SortByCreateRevision
	SortByModRevision
	SortByValue
)

// RangeResult answers a RangeRequest.
type RangeResult struct {
	Revision int64 // the store's newest revision when the read was served
	KVs      []KeyValue
	Count    int64 // keys in the range, whatever Limit and the bounds say
	More     bool  // Limit cut the answer short
}

// CompareTarget names the attribute of a key that a Compare looks at.
type CompareTarget uint8

// The attributes a transaction can be conditional on. A key that does not exist
// has create revision, mod revision, version and lease 0.
const (
	CompareVersion CompareTarget = iota
	CompareCreateRevision
	CompareModRevision
	CompareLease
	CompareValue
)

// CompareResult is the relation that must hold between the key's attribute and the operand.
type CompareResult uint8

// The relations, as in the etcd v3 API.
const (
	Equal CompareResult = iota
	Greater
	Less
	NotEqual
)

// Compare is one condition of a transaction. With End set it must hold for every key in [Key, End).
type Compare struct {
	Key, End []byte
	Target   CompareTarget
	Result   CompareResult
	Number   int64  // operand for every target but CompareValue
	Value    []byte // operand for CompareValue
}

// Op is one operation of a transaction: exactly one of its fields is set.
type Op struct {
	Range  *RangeRequest
	Put    *PutRequest
	Delete *DeleteRequest
	Txn    *TxnRequest
}

// PutRequest writes a key.
type PutRequest struct {
	Key, Value  []byte
	Lease       int64 // attaches the key to a lease, which must exist; 0 attaches it to none
	PrevKV      bool  // return the version that this put replaces
	IgnoreValue bool  // keep the present value (the key must exist)
	IgnoreLease bool  // keep the present lease (the key must exist)
}

// DeleteRequest deletes the keys in [Key, End), with End as in RangeRequest.
type DeleteRequest struct {
	Key, End []byte
	PrevKV   bool // return the versions that were deleted
}

// TxnRequest runs Then if every Compare holds and Else otherwise, atomically, in one revision.
type TxnRequest struct {
	Compare    []Compare
	Then, Else []Op
}

// TxnResult answers a TxnRequest.
type TxnResult struct {
	Revision  int64 // the transaction's revision if it wrote, else the store's newest
	Succeeded bool  // Then ran
	Ops       []OpResult
}

// OpResult answers one Op; the field of the same name as in the Op is set.
type OpResult struct {
	Range  *RangeResult
	Put    *PutResult
	Delete *DeleteResult
	Txn    *TxnResult
}

// PutResult answers a PutRequest.
type PutResult struct {
	PrevKV *KeyValue // nil unless asked for and there was one
}

// DeleteResult answers a DeleteRequest.
type DeleteResult struct {
	Deleted int64
	PrevKVs []KeyValue // empty unless asked for
}

// EventType says what an Event did to its key.
type EventType uint8

// The two kinds of event.
const (
	PutEvent EventType = iota
	DeleteEvent
)

// Event is one change of one key. For DeleteEvent, KV has only Key and ModRevision.
type Event struct {
	Type   EventType
	KV     KeyValue
	PrevKV *KeyValue // set if the watch asked for it and the key existed before
}

// WatchRequest subscribes to the changes of the keys in [Key, End), with End as in RangeRequest.
type WatchRequest struct {
	Key, End      []byte
	StartRevision int64 // first revision to report; 0 means the next one
	PrevKV        bool
	// PartialPrevKV lets a watch with PrevKV start at the compacted revision, as etcd does: the events
	// of that revision then come without PrevKV.
	PartialPrevKV bool
	Progress      bool // also send batches without events that move Revision on when nothing happens
	NoPut         bool // leave puts out
	NoDelete      bool // leave deletes out
}

// WatchBatch is what a watch delivers. Events are in revision order and the events of one
// revision are never split over two batches. A batch without events is progress: everything up to
// and including Revision that concerns the watch has been delivered.
type WatchBatch struct {
	Revision int64
	Events   []Event
	// Err ends the watch: ErrCompacted (CompactRevision then says how far), or the reason the store gave.
	Err             error
	CompactRevision int64
}
