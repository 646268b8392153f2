package raftstore

import "github.com/hashicorp/raft"

// Raft keeps its term and vote in the stable store under these names.
var (
	keyCurrentTerm       = []byte("CurrentTerm")
	keyLastVoteTerm      = []byte("LastVoteTerm")
	keyLastVoteCandidate = []byte("LastVoteCand")
)

// bootstrap writes the first configuration into the log of a new member.
func (m *Member) bootstrap(rc *raft.Config, logs raft.LogStore) error {
	if !m.cfg.Bootstrap {
		return nil
	}
	if err := m.forgetHalfBootstrap(); err != nil {
		return err
	}
	exists, err := raft.HasExistingState(logs, m.log, m.snapshots)
	if err != nil || exists {
		return err
	}
	return raft.BootstrapCluster(rc, logs, m.log, m.snapshots, m.transport, m.cfg.configuration())
}

// forgetHalfBootstrap takes back what raft.BootstrapCluster has written when it did not come to its end, because the process
// was killed or the disk was full. It writes the term first, 1, and then the configuration as the log's first entry. Without
// that entry the member would wait for ever for somebody to tell it who the others are, and raft would not begin again, since
// there is a term. A member whose log was lost is another thing: it has voted, or applied something, or its term is higher.
func (m *Member) forgetHalfBootstrap() error {
	last, err := m.log.LastIndex()
	if err != nil || last > 0 || m.store.Applied() > 0 {
		return err
	}
	snapshots, err := m.snapshots.List()
	if err != nil || len(snapshots) > 0 {
		return err
	}
	term, err := m.log.GetUint64(keyCurrentTerm)
	if err != nil || term != 1 {
		return ignoreNotFound(err)
	}
	voted, err := m.log.GetUint64(keyLastVoteTerm)
	if err = ignoreNotFound(err); err != nil || voted != 0 {
		return err
	}
	m.cfg.Log.Info("the beginning of this cluster was interrupted, it begins again")
	return m.log.SetUint64(keyCurrentTerm, 0)
}
