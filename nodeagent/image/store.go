package image

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Config says where a Store lives and what it may do.
type Config struct {
	Dir       string       // images and layers; made when missing
	HostsFile string       // registry mirrors (see hosts.go); may be empty or absent
	Limits    Limits       // bounds of one layer; zero fields take the defaults
	Log       *slog.Logger // nil discards
}

// Limits bound one unpacked layer, so that an image cannot fill the node by surprise.
type Limits struct {
	Bytes   int64 // of regular files, 32 GiB by default
	Entries int   // 2,000,000 by default
}

// Image is one image of the store. It is read-only: a change makes a new value.
type Image struct {
	ID      string        `json:"id"`      // digest of the configuration, sha256:…
	Tags    []string      `json:"tags"`    // full names, docker.io/library/nginx:1.27
	Digests []string      `json:"digests"` // docker.io/library/nginx@sha256:…
	Size    int64         `json:"size"`    // bytes of all layers, unpacked
	Chain   []string      `json:"chain"`   // chain ids of the layers, bottom first
	Config  v1.ConfigFile `json:"config"`
}

// Store is the set of images of one node. Its methods may be called concurrently.
type Store struct {
	cfg     Config
	log     *slog.Logger
	layers  *layers
	overlay bool // overlayfs can be mounted here; root file systems are copies otherwise

	// inUse is held shared by everything that adds layers or is about to use them, and
	// exclusively by Prune. It comes before mu.
	inUse sync.RWMutex
	pulls keyedMutex

	mu     sync.RWMutex // guards images
	images map[string]*Image
}

// Open loads the store in cfg.Dir and throws away half-unpacked layers.
func Open(cfg Config) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{cfg: cfg, log: cfg.Log, images: map[string]*Image{}}
	if err := os.MkdirAll(s.recordDir(), 0o700); err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	var err error
	if s.layers, err = openLayers(filepath.Join(cfg.Dir, "layers"), cfg.Limits); err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	if s.overlay = probeOverlay(cfg.Dir); !s.overlay {
		s.log.Warn("overlayfs cannot be mounted here: root file systems are plain copies", "dir", cfg.Dir)
	}
	return s, s.load()
}

// Overlay says whether root file systems are overlay mounts (else plain copies).
func (s *Store) Overlay() bool { return s.overlay }

// Dir is the directory of the store, for file system statistics.
func (s *Store) Dir() string { return s.cfg.Dir }

func (s *Store) recordDir() string { return filepath.Join(s.cfg.Dir, "records") }

func (s *Store) recordPath(id string) string {
	return filepath.Join(s.recordDir(), strings.TrimPrefix(id, "sha256:")+".json")
}

// load reads the records; one that cannot be read, or whose layers are gone, is dropped
// with a log line: the image can be pulled again.
func (s *Store) load() error {
	entries, err := os.ReadDir(s.recordDir())
	if err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(s.recordDir(), e.Name())
		img, err := readRecord(path)
		if err == nil && !s.layers.hasAll(img.Chain) {
			err = fmt.Errorf("%w: layers are missing", ErrBadArchive)
		}
		if err != nil {
			s.log.Warn("image record dropped", "path", path, "err", err)
			_ = os.Remove(path)
			continue
		}
		s.images[img.ID] = img
	}
	return nil
}

func readRecord(path string) (*Image, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	img := &Image{}
	if err := json.Unmarshal(b, img); err != nil {
		return nil, err
	}
	return img, nil
}

// writeRecord writes durably: a pull that was answered is there after a power cut.
func (s *Store) writeRecord(img *Image) error {
	b, err := json.Marshal(img)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(s.recordDir(), "tmp-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	if _, err := tmp.Write(b); err != nil {
		return err
	}
	if err := tmp.Sync(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), s.recordPath(img.ID))
}

// List is every image, in order of id.
func (s *Store) List() []*Image {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]*Image, 0, len(s.images))
	for _, img := range s.images {
		out = append(out, img)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// Get finds an image by id (with or without "sha256:"), by name or by name and digest.
// A name with a tag and a digest is looked up by its digest.
func (s *Store) Get(ref string) (*Image, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.find(ref)
}

func (s *Store) find(ref string) (*Image, error) {
	if idPattern.MatchString(ref) {
		if img := s.images["sha256:"+strings.TrimPrefix(ref, "sha256:")]; img != nil {
			return img, nil
		}
		return nil, fmt.Errorf("%w: %s", ErrNotFound, ref)
	}
	full, err := Normalize(ref)
	if err != nil {
		return nil, err
	}
	for _, img := range s.images {
		if slices.Contains(img.Tags, full) || slices.Contains(img.Digests, full) {
			return img, nil
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrNotFound, full)
}

// add merges img into the store and gives it tag, which may be empty, taking the tag away
// from the image that had it. The new record is written first: a crash in between leaves
// the tag with the new image, because load order does not matter to a repeated pull.
func (s *Store) add(img *Image) (*Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.images[img.ID]; old != nil {
		img.Tags = union(old.Tags, img.Tags)
		img.Digests = union(old.Digests, img.Digests)
	}
	if err := s.writeRecord(img); err != nil {
		return nil, fmt.Errorf("image %s: %w", img.ID, err)
	}
	s.images[img.ID] = img
	for _, other := range s.images {
		if other.ID == img.ID {
			continue
		}
		if err := s.untag(other, img.Tags); err != nil {
			return nil, err
		}
	}
	return img, nil
}

// untag takes the names away from img. The caller holds mu.
func (s *Store) untag(img *Image, names []string) error {
	rest := without(img.Tags, names)
	if len(rest) == len(img.Tags) {
		return nil
	}
	changed := *img
	changed.Tags = rest
	if err := s.writeRecord(&changed); err != nil {
		return fmt.Errorf("image %s: %w", img.ID, err)
	}
	s.images[img.ID] = &changed
	return nil
}

// Remove forgets the image that ref means, with all its names (CRI: RemoveImage). Its
// layers stay until Prune. An image that is not there is no error.
func (s *Store) Remove(ref string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	img, err := s.find(ref)
	if err != nil {
		return nil //nolint:nilerr // CRI: removing what is not there succeeds
	}
	if err := os.Remove(s.recordPath(img.ID)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("image %s: %w", img.ID, err)
	}
	delete(s.images, img.ID)
	return nil
}

// Prune deletes the layers that neither an image nor anything in keep (chain ids) uses.
// While a pull or import runs it does nothing: its layers have no record yet.
func (s *Store) Prune(keep map[string]bool) error {
	if !s.inUse.TryLock() {
		return nil
	}
	defer s.inUse.Unlock()
	used := map[string]bool{}
	for chain := range keep {
		used[chain] = true
	}
	for _, img := range s.List() {
		for _, chain := range img.Chain {
			used[chain] = true
		}
	}
	return s.layers.prune(used)
}

// Use calls f while no layer can be pruned: between finding an image and registering
// that a container uses it.
func (s *Store) Use(f func() error) error {
	s.inUse.RLock()
	defer s.inUse.RUnlock()
	return f()
}

// Usage is the bytes and files of all unpacked layers.
func (s *Store) Usage() (bytes, files uint64) { return s.layers.usage() }

func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

func without(list, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(gone, s) })
}
