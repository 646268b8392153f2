package mvcc

import "errors"

// What can go wrong with a request. All of them mean that nothing was changed.
var (
	// ErrCompacted: the revision asked for is older than what compaction has left.
	ErrCompacted = errors.New("mvcc: required revision has been compacted")
	// ErrFutureRevision: the revision asked for has not happened yet.
	ErrFutureRevision = errors.New("mvcc: required revision is a future revision")
	// ErrDuplicateKey: a transaction would change one key twice.
	ErrDuplicateKey = errors.New("mvcc: duplicate key given in txn request")
	// ErrEmptyKey: a request names no key.
	ErrEmptyKey = errors.New("mvcc: key is not provided")
	// ErrKeyNotFound: a put with IgnoreValue or IgnoreLease names a key that does not exist.
	ErrKeyNotFound = errors.New("mvcc: key not found")
	// ErrValueProvided: a put has IgnoreValue set and a value.
	ErrValueProvided = errors.New("mvcc: value is provided")
	// ErrLeaseProvided: a put has IgnoreLease set and a lease.
	ErrLeaseProvided = errors.New("mvcc: lease is provided")
	// ErrTooManyOps: a transaction has a list longer than MaxTxnOps, or is nested deeper than MaxTxnDepth.
	ErrTooManyOps = errors.New("mvcc: too many operations in txn request")
	// ErrLeaseNotFound: a put names a lease that does not exist, or one that does not exist is to be revoked.
	ErrLeaseNotFound = errors.New("mvcc: requested lease not found")
	// ErrLeaseExists: a lease of this id was granted before and not revoked.
	ErrLeaseExists = errors.New("mvcc: lease already exists")
	// ErrLeaseTTL: a lease is to be granted for longer than MaxLeaseSeconds.
	ErrLeaseTTL = errors.New("mvcc: too large lease TTL")
	// ErrInvalidOp: an operation of a transaction is empty, or of several kinds at once, or a
	// compare names a target or relation, or a range an order, that does not exist.
	ErrInvalidOp = errors.New("mvcc: invalid operation in txn request")
)

// What can be wrong with the store.
var (
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("mvcc: store is closed")
	// ErrCorrupt: the file does not hold what the index says it holds, or is not a store's file.
	ErrCorrupt = errors.New("mvcc: file is corrupt")
)
