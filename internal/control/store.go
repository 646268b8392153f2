package control

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"kontiki/raftstore"
)

// Store is the store member of a process; *raftstore.Member is one.
type Store interface {
	MemberStatuses(ctx context.Context) []raftstore.MemberStatus
	AddMember(ctx context.Context, id, address string) error
	AddLearner(ctx context.Context, id, address string) error
	PromoteMember(ctx context.Context, id string) error
	RemoveMember(ctx context.Context, id string) error
	UpdateMember(ctx context.Context, id, address string) error
	MoveLeader(ctx context.Context, id string) error
	LogOf(ctx context.Context, member string, from uint64, f func(raftstore.LogEntry) error) error
	History(key []byte) ([]raftstore.KeyChange, error)
	Hashes(ctx context.Context, revision int64) ([]raftstore.MemberHash, error)
	SaveSnapshot(w io.Writer) error
	Compact(ctx context.Context, revision int64) error
	DefragmentMember(ctx context.Context, member string) error
	Alarms() []raftstore.Alarm
	ClearAlarm(ctx context.Context, a raftstore.Alarm) error
}

var _ Store = (*raftstore.Member)(nil)

// StoreMember is a member and what it says about itself.
type StoreMember struct {
	raftstore.MemberInfo
	Status *raftstore.Status `json:"status,omitempty"` // nil if it did not answer
	Error  string            `json:"error,omitempty"`  // why it did not
}

// StoreHash is the fingerprint of a member's content at a revision.
type StoreHash struct {
	MemberID string `json:"memberID"`
	Revision int64  `json:"revision"`
	Hash     string `json:"hash,omitempty"`  // SHA-256 in hexadecimal
	Error    string `json:"error,omitempty"` // why there is none
}

// ErrNoMember answers calls for a store member where none runs: the store is outside, or there is none.
var ErrNoMember = errors.New("this process runs no store member")

// addStore adds the calls about the store member.
func (s *Server) addStore(mux *http.ServeMux) {
	calls := map[string]func(http.ResponseWriter, *http.Request) (any, error){
		"GET /store/members":           s.storeMembers,
		"POST /store/members/{change}": s.changeMembers,
		"GET /store/history": func(_ http.ResponseWriter, r *http.Request) (any, error) {
			return s.Store.History([]byte(r.FormValue("key")))
		},
		"GET /store/hashes":   s.storeHashes,
		"POST /store/compact": s.compactStore,
		"POST /store/defragment": func(_ http.ResponseWriter, r *http.Request) (any, error) {
			return nil, s.Store.DefragmentMember(r.Context(), r.FormValue("member"))
		},
		"GET /store/alarms":    func(http.ResponseWriter, *http.Request) (any, error) { return s.Store.Alarms(), nil },
		"DELETE /store/alarms": s.clearAlarm,
	}
	for pattern, call := range calls {
		mux.HandleFunc(pattern, s.withStore(func(w http.ResponseWriter, r *http.Request) {
			reply(w, func() (any, error) { return call(w, r) })
		}))
	}
	mux.HandleFunc("GET /store/log", s.withStore(s.storeLog))
	mux.HandleFunc("GET /store/snapshot", s.withStore(s.saveSnapshot))
}

// origin is who the raft log shows for what is asked through the socket: its owner has the data directory.
var origin = raftstore.Origin{User: "system:store", UserAgent: "kontiki store"}

func (s *Server) withStore(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.Store == nil {
			http.Error(w, ErrNoMember.Error(), http.StatusNotImplemented)
			return
		}
		next(w, r.WithContext(raftstore.WithOrigin(r.Context(), origin)))
	}
}

func (s *Server) storeMembers(_ http.ResponseWriter, r *http.Request) (any, error) {
	members := []StoreMember{}
	for _, m := range s.Store.MemberStatuses(r.Context()) {
		member := StoreMember{MemberInfo: m.MemberInfo, Status: &m.Status}
		if m.Err != nil {
			member.Status, member.Error = nil, m.Err.Error()
		}
		members = append(members, member)
	}
	return members, nil
}

func (s *Server) changeMembers(_ http.ResponseWriter, r *http.Request) (any, error) {
	ctx, id, address := r.Context(), r.FormValue("id"), r.FormValue("address")
	switch r.PathValue("change") {
	case "add":
		return nil, s.Store.AddMember(ctx, id, address)
	case "add-learner":
		return nil, s.Store.AddLearner(ctx, id, address)
	case "promote":
		return nil, s.Store.PromoteMember(ctx, id)
	case "remove":
		return nil, s.Store.RemoveMember(ctx, id)
	case "update":
		return nil, s.Store.UpdateMember(ctx, id, address)
	case "lead":
		return nil, s.Store.MoveLeader(ctx, id)
	default:
		return nil, errors.New("no such change of members")
	}
}

func (s *Server) storeHashes(_ http.ResponseWriter, r *http.Request) (any, error) {
	revision, err := strconv.ParseInt(r.FormValue("revision"), 10, 64)
	if err != nil {
		return nil, err
	}
	hashes, err := s.Store.Hashes(r.Context(), revision)
	answer := []StoreHash{}
	for _, h := range hashes {
		x := StoreHash{MemberID: h.MemberID, Revision: h.Revision, Hash: hex.EncodeToString(h.Hash[:])}
		if h.Err != nil {
			x.Hash, x.Error = "", h.Err.Error()
		}
		answer = append(answer, x)
	}
	return answer, err
}

func (s *Server) compactStore(_ http.ResponseWriter, r *http.Request) (any, error) {
	revision, err := strconv.ParseInt(r.FormValue("revision"), 10, 64)
	if err != nil {
		return nil, err
	}
	return nil, s.Store.Compact(r.Context(), revision)
}

func (s *Server) clearAlarm(_ http.ResponseWriter, r *http.Request) (any, error) {
	return nil, s.Store.ClearAlarm(r.Context(), raftstore.Alarm{Kind: r.FormValue("kind"), MemberID: r.FormValue("member")})
}

// errEnough ends the reading of the log.
var errEnough = errors.New("enough")

// storeLog streams entries, one JSON object a line. An error before the first one is the answer; one that comes later breaks the
// connection off, so that it is not taken for the end.
func (s *Server) storeLog(w http.ResponseWriter, r *http.Request) {
	from, err := strconv.ParseUint(r.FormValue("from"), 10, 64)
	limit, err2 := strconv.Atoi(r.FormValue("limit"))
	if err := errors.Join(err, err2); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out, begun := json.NewEncoder(w), false
	err = s.Store.LogOf(r.Context(), r.FormValue("member"), from, func(e raftstore.LogEntry) error {
		begun = true
		if err := out.Encode(e); err != nil {
			return err
		}
		if limit--; limit == 0 {
			return errEnough
		}
		return nil
	})
	switch {
	case err == nil || errors.Is(err, errEnough):
	case begun:
		panic(http.ErrAbortHandler)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// saveSnapshot streams a snapshot. One that is cut short is broken off, and its checksum tells as well.
func (s *Server) saveSnapshot(w http.ResponseWriter, _ *http.Request) {
	if s.Store.SaveSnapshot(w) != nil {
		panic(http.ErrAbortHandler)
	}
}
