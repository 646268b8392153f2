package raftstore

import "errors"

var (
	// ErrUnknownOutcome: the proposal may or may not be, or become, part of history. Who must know
	// reads the store; who sends the same transaction again needs a compare that makes that harmless.
	ErrUnknownOutcome = errors.New("raftstore: outcome of the proposal is unknown")
	// ErrNoLeader: no leader could be reached for as long as the request waited. Nothing was changed.
	// With members running, it means that they are no quorum, or cannot reach each other.
	ErrNoLeader = errors.New("raftstore: no leader (is a majority of the members up and connected?)")
	// ErrNotLeader: the member that was asked does not lead. Nothing was changed. Member's own methods
	// look for the leader and ask again; they do not return it.
	ErrNotLeader = errors.New("raftstore: not the leader")
	// ErrTooLarge: the proposal is larger than MaxProposalBytes. Nothing was changed.
	ErrTooLarge = errors.New("raftstore: request is too large")
	// ErrBadTransferee: leadership is to go to somebody who is no voter.
	ErrBadTransferee = errors.New("raftstore: cannot hand leadership to this member")
	// ErrClosed: the member was closed. Nothing was changed.
	ErrClosed = errors.New("raftstore: member is closed")
	// ErrFormat: bytes are not what the format says: an entry, a frame or a result cannot be decoded.
	ErrFormat = errors.New("raftstore: malformed bytes")
	// ErrLogLost: the store has applied entries that neither the raft log nor a snapshot reaches. A log that began
	// anew would count from 1, and the store would take its entries for ones that it has.
	ErrLogLost = errors.New("raftstore: the raft log is lost, or older than the store")
	// ErrOtherLog: the directory's raft log is kept in another store than Config.RaftLog asks for.
	ErrOtherLog = errors.New("raftstore: raft log is of another kind")
	// ErrRemoved: this member was removed from the cluster. Nothing was changed.
	ErrRemoved = errors.New("raftstore: not a member of the cluster any more")
	// ErrNotLetIn: a new member did not get into the cluster that it was to join: Config.JoinTimeout is over, or
	// asking again is of no use.
	ErrNotLetIn = errors.New("raftstore: cannot join the cluster")
	// ErrOtherCluster: the members that Config.Join names, and the member that the directory holds, do not know each other.
	ErrOtherCluster = errors.New("raftstore: the directory holds a member of another cluster")
	// ErrNoSpace: the alarm NOSPACE is on, so nothing is added to the store. Deletes and compaction go on; when
	// they have made room, ClearAlarm ends it.
	ErrNoSpace = errors.New("raftstore: database space exceeded (delete or compact, or free the disk, then: kontiki store alarms clear)")
)

// What can be wrong with snapshots and recovery. Nothing was changed.
var (
	// ErrSnapshotDamaged: the checksum of a snapshot is not that of its bytes.
	ErrSnapshotDamaged = errors.New("raftstore: snapshot is damaged")
	// ErrQuorumReachable: RecoverQuorum is not for a cluster that can help itself.
	ErrQuorumReachable = errors.New("raftstore: a majority of the members can be reached")
)

// What can be wrong with a change of membership. Nothing was changed.
var (
	// ErrMemberNotFound: there is no member of this id.
	ErrMemberNotFound = errors.New("raftstore: member not found")
	// ErrMemberExists: a member of this id is at another address.
	ErrMemberExists = errors.New("raftstore: member exists")
	// ErrAddressTaken: another member is at this address.
	ErrAddressTaken = errors.New("raftstore: address is taken by another member")
	// ErrNameTaken: another member, at another address, has this name.
	ErrNameTaken = errors.New("raftstore: name is taken by another member")
	// ErrStranger: the certificate of who asks is not that of a member, or not for the name under which it wants to join.
	ErrStranger = errors.New("raftstore: certificate is not that of a member")
	// ErrInvalidMember: an id or address is missing.
	ErrInvalidMember = errors.New("raftstore: invalid member")
	// ErrNotLearner: the member has its vote already.
	ErrNotLearner = errors.New("raftstore: member is not a learner")
	// ErrLearnerNotReady: the learner has not caught up with the leader.
	ErrLearnerNotReady = errors.New("raftstore: learner has not caught up with the leader")
	// ErrNotEnoughMembers: the voters that run would be no majority any more.
	ErrNotEnoughMembers = errors.New("raftstore: too few members are running for this change")
	// ErrTransferFailed: the member that was to lead did not take over.
	ErrTransferFailed = errors.New("raftstore: leadership was not handed over")
)
