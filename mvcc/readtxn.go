package mvcc

// ReadOnly reports whether the transaction writes nothing, whichever way its compares go.
func (r *TxnRequest) ReadOnly() bool {
	for _, ops := range [][]Op{r.Then, r.Else} {
		for _, op := range ops {
			if op.Put != nil || op.Delete != nil || op.Txn != nil && !op.Txn.ReadOnly() {
				return false
			}
		}
	}
	return true
}

// ReadTxn runs a transaction that is ReadOnly (else ErrInvalidOp) against what is applied here: it
// needs no place in the log. Applying waits until it is done, as it is one look at one state.
func (s *Store) ReadTxn(req *TxnRequest) (TxnResult, error) {
	if err := req.Validate(); err != nil {
		return TxnResult{}, err
	}
	if !req.ReadOnly() {
		return TxnResult{}, ErrInvalidOp
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return TxnResult{}, ErrClosed
	}
	return newWriteTxn(s).run(req)
}
