package mvcc

// Limits of a transaction.
const (
	// MaxTxnOps is the longest list of compares or operations that a transaction, nested ones each
	// by themselves, may have (etcd's default for --max-txn-ops).
	MaxTxnOps = 128
	// MaxTxnDepth is how deep transactions may be nested.
	MaxTxnDepth = 8
)

// Validate checks what can be checked without looking at the store. A transaction that would change
// a key twice is refused, whichever way its compares go (KV-05, KV-06): two puts of a key, or a put
// of a key that is deleted. Deleting a key twice is fine, there is only one change. The two branches
// of a nested transaction exclude each other, so they may touch the same keys.
func (r *TxnRequest) Validate() error {
	if lone(r.Then) && lone(r.Else) { // most transactions: nothing to gather, as nothing can be in conflict
		if err := r.checkCompares(); err != nil {
			return err
		}
		for _, ops := range [][]Op{r.Then, r.Else} {
			for _, op := range ops {
				if err := op.check(); err != nil {
					return err
				}
			}
		}
		return nil
	}
	_, err := r.changes(1)
	return err
}

// lone says that a list has one operation at most, and that no transaction.
func lone(ops []Op) bool { return len(ops) == 0 || len(ops) == 1 && ops[0].Txn == nil }

// changes is the keys that some operations may change.
type changes struct {
	puts    map[string]struct{}
	deletes []keyRange
}

func (r *TxnRequest) changes(depth int) (changes, error) {
	if depth > MaxTxnDepth || len(r.Then) > MaxTxnOps || len(r.Else) > MaxTxnOps {
		return changes{}, ErrTooManyOps
	}
	if err := r.checkCompares(); err != nil {
		return changes{}, err
	}
	then, err := changesOf(r.Then, depth)
	if err != nil {
		return changes{}, err
	}
	other, err := changesOf(r.Else, depth)
	then.add(other)
	return then, err
}

func (r *TxnRequest) checkCompares() error {
	if len(r.Compare) > MaxTxnOps {
		return ErrTooManyOps
	}
	for _, c := range r.Compare {
		if len(c.Key) == 0 {
			return ErrEmptyKey
		}
		if c.Target > CompareValue || c.Result > NotEqual {
			return ErrInvalidOp
		}
	}
	return nil
}

// changesOf gathers what a list of operations changes, and refuses it if two of them conflict.
func changesOf(ops []Op, depth int) (changes, error) {
	var all changes
	for _, op := range ops {
		c, err := op.changes(depth)
		if err != nil {
			return changes{}, err
		}
		if all.conflict(c) {
			return changes{}, ErrDuplicateKey
		}
		all.add(c)
	}
	return all, nil
}

func (op Op) changes(depth int) (changes, error) {
	if err := op.check(); err != nil {
		return changes{}, err
	}
	switch {
	case op.Put != nil:
		return changes{puts: map[string]struct{}{string(op.Put.Key): {}}}, nil
	case op.Delete != nil:
		return changes{deletes: []keyRange{{op.Delete.Key, op.Delete.End}}}, nil
	case op.Txn != nil:
		return op.Txn.changes(depth + 1)
	}
	return changes{}, nil
}

// check looks at an operation by itself; what is in a transaction it leaves to changes.
func (op Op) check() error {
	switch {
	case !op.hasOneKind():
		return ErrInvalidOp
	case op.Put != nil:
		return op.Put.validate()
	case op.Delete != nil:
		return needKey(op.Delete.Key)
	case op.Range != nil:
		return op.Range.validate()
	}
	return nil
}

func (op Op) hasOneKind() bool {
	n := 0
	for _, set := range []bool{op.Range != nil, op.Put != nil, op.Delete != nil, op.Txn != nil} {
		if set {
			n++
		}
	}
	return n == 1
}

func (r *RangeRequest) validate() error {
	if r.SortBy > SortByValue {
		return ErrInvalidOp
	}
	return needKey(r.Key)
}

func (p *PutRequest) validate() error {
	switch {
	case p.IgnoreValue && len(p.Value) > 0:
		return ErrValueProvided
	case p.IgnoreLease && p.Lease != 0:
		return ErrLeaseProvided
	}
	return needKey(p.Key)
}

func needKey(key []byte) error {
	if len(key) == 0 {
		return ErrEmptyKey
	}
	return nil
}

// conflict reports whether c and o together would change a key twice.
func (c *changes) conflict(o changes) bool {
	for key := range o.puts {
		if _, twice := c.puts[key]; twice || deleted(c.deletes, key) {
			return true
		}
	}
	for key := range c.puts {
		if deleted(o.deletes, key) {
			return true
		}
	}
	return false
}

func deleted(deletes []keyRange, key string) bool {
	for _, r := range deletes {
		if r.contains([]byte(key)) {
			return true
		}
	}
	return false
}

func (c *changes) add(o changes) {
	if c.puts == nil {
		c.puts = o.puts
	} else {
		for key := range o.puts {
			c.puts[key] = struct{}{}
		}
	}
	c.deletes = append(c.deletes, o.deletes...)
}
