package raftstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestInterruptedBootstrap: a member whose first start ended after any of its writes, as by a kill or a full disk, is the
// beginning of a cluster when it is started again.
func TestInterruptedBootstrap(t *testing.T) {
	for _, kind := range []string{LogWAL, LogBoltDB} {
		for allowed := range 2 { // the term, and the configuration
			t.Run(fmt.Sprint(kind, allowed), func(t *testing.T) {
				cfg := Config{Dir: t.TempDir(), NodeID: "a", Bootstrap: true, RaftLog: kind}
				full, writes := errors.New("no space left on device"), 0
				interrupted := cfg
				interrupted.Log = quiet()
				interrupted.OnDisk = func(write func() error) error {
					if writes++; writes > allowed {
						return full
					}
					return write()
				}
				_, err := Open(interrupted)
				require.ErrorContains(t, err, full.Error())

				m := openMember(t, cfg)
				defer func() { require.NoError(t, m.Close()) }()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				require.NoError(t, m.WaitReady(ctx))
				_, err = m.Txn(ctx, putTxn("k", "v"))
				require.NoError(t, err)
			})
		}
	}
}
