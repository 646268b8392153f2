package apiclient

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"weak"
)

// Servers are the API servers of a cluster as one client knows them, and which of them it calls now. Each client prefers
// them in an order of its own, so that all clients together are spread over all servers, those of a dead server over the
// others, and a new server takes its share from each (rendezvous hashing). Files: balanced.go calls the current one and
// moves on when it fails, health.go finds out when it fails otherwise, follow.go learns who there is.
type Servers struct {
	config ServersConfig
	log    *slog.Logger

	// How often health.go looks, how long it waits for an answer, and how often it tries to go back to the preferred one.
	period, patience, returnPeriod time.Duration

	mu      sync.Mutex // guards what follows; nothing is called under it
	live    []string   // as the cluster says; empty: not known yet
	former  []string   // those that were live once, the newest first
	current string
	clients []weak.Pointer[balanced] // of those that somebody still has
	ready   chan struct{}            // closed, and made anew, when a server is seen to be ready

	suspected chan struct{} // of capacity 1: a request has failed, look now
}

// ServersConfig says where to begin.
type ServersConfig struct {
	// Given are the URLs (https://HOST:PORT) that the client was told. There must be one, or Local.
	Given []string
	// Local is the URL of the server in this process, which is always preferred; empty without.
	Local string
	// Identity distinguishes this client from others: the name of its node.
	Identity string
	// File keeps what was learned for the next start, when the servers that were given may be gone. Empty keeps nothing.
	File string
	// Log discards when nil.
	Log *slog.Logger
}

// How health.go looks by default.
const (
	lookPeriod   = time.Second
	lookPatience = time.Second
	returnPeriod = 30 * time.Second
)

// maxFormer bounds how many servers are remembered that are not live.
const maxFormer = 16

// OpenServers reads what was learned before. A file that cannot be read is worth a warning, not more: the cluster says it again.
func OpenServers(config ServersConfig) *Servers {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	s := &Servers{
		config: config, log: config.Log, period: lookPeriod, patience: lookPatience, returnPeriod: returnPeriod,
		suspected: make(chan struct{}, 1), ready: make(chan struct{}),
	}
	if known, err := readKnown(config.File); err != nil {
		s.log.Warn("known API servers cannot be read, those that were given are called", "file", config.File, "err", err)
	} else {
		s.live, s.former = known.Live, known.Former
	}
	s.current = s.ranked()[0]
	return s
}

// Current is the URL of the server that is called now.
func (s *Servers) Current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// List has all servers, those that this client prefers first.
func (s *Servers) List() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ranked()
}

// ranked are the local server, the live ones, those that were given, and those that were live once. s.mu is held.
func (s *Servers) ranked() []string {
	var list []string
	if s.config.Local != "" {
		list = append(list, s.config.Local)
	}
	list = append(list, rank(s.config.Identity, s.live)...)
	list = append(list, rank(s.config.Identity, s.config.Given)...)
	list = append(list, s.former...)
	return unique(list)
}

// rank orders servers by a hash of both names, the highest first (Thaler and Ravishankar, "Using name-based mappings to
// increase hit rates", 1998).
func rank(client string, servers []string) []string {
	weight := func(server string) uint64 {
		sum := sha256.Sum256([]byte(client + "\x00" + server))
		return binary.BigEndian.Uint64(sum[:])
	}
	ranked := slices.Clone(servers)
	slices.SortFunc(ranked, func(a, b string) int {
		if weight(a) > weight(b) {
			return -1
		}
		return 1
	})
	return ranked
}

// unique drops all but the first of equal ones.
func unique(list []string) []string {
	var out []string
	for _, one := range list {
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}

// learn takes the list of live servers from the cluster. An empty one is no news: there is one that has said so.
func (s *Servers) learn(live []string) {
	slices.Sort(live)
	s.mu.Lock()
	if len(live) == 0 || slices.Equal(live, s.live) {
		s.mu.Unlock()
		return
	}
	s.former = unique(append(slices.Clone(s.live), s.former...))
	s.former = slices.DeleteFunc(s.former, func(url string) bool { return slices.Contains(live, url) })
	s.former = s.former[:min(len(s.former), maxFormer)]
	s.live = live
	if ranked := s.ranked(); !slices.Contains(live, s.current) && s.current != s.config.Local {
		s.current = ranked[0] // it is stopping, or dead
	}
	current, known := s.current, knownServers{Live: s.live, Former: s.former}
	s.mu.Unlock()
	s.log.Info("the cluster's API servers have changed", "servers", live, "current", current)
	if err := known.write(s.config.File); err != nil {
		s.log.Warn("the API servers cannot be noted for the next start", "file", s.config.File, "err", err)
	}
}

// move makes to the current server if from was, and says whether it did.
func (s *Servers) move(from, to, reason string) bool {
	s.mu.Lock()
	moved := s.current == from && from != to
	if moved {
		s.current = to
	}
	s.mu.Unlock()
	if moved {
		s.log.Info("another API server is called from now on", "server", to, "before", from, "reason", reason)
	}
	return moved
}

// suspect has health.go look at once.
func (s *Servers) suspect() {
	select {
	case s.suspected <- struct{}{}:
	default: // it is about to
	}
}

// knownServers is what the file has.
type knownServers struct {
	Live   []string `json:"live"`
	Former []string `json:"former,omitempty"`
}

func readKnown(path string) (known knownServers, err error) {
	if path == "" {
		return known, nil
	}
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return known, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &known)
	}
	return known, err
}

// write replaces the file as a whole: one that a crash leaves empty is as good as none.
func (k knownServers) write(path string) error {
	if path == "" {
		return nil
	}
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
