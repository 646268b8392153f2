package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// layers is the directory of unpacked layers.
type layers struct {
	dir    string
	limits Limits

	mu    sync.RWMutex // guards known
	known map[string]layerInfo
}

// layerInfo is layer.json. The directory's name is only the beginning of the chain id
// (mount options are limited to a page, see rootfs.go), so the whole of it stands here.
type layerInfo struct {
	ChainID string `json:"chainID"`
	DiffID  string `json:"diffID"`
	Bytes   int64  `json:"bytes"`
	Files   int    `json:"files"`
}

func openLayers(dir string, limits Limits) (*layers, error) {
	if limits.Bytes == 0 {
		limits.Bytes = 32 << 30
	}
	if limits.Entries == 0 {
		limits.Entries = 2_000_000
	}
	l := &layers{dir: dir, limits: limits, known: map[string]layerInfo{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := readLayerInfo(path)
		if err != nil || strings.HasPrefix(e.Name(), "tmp-") {
			if err := os.RemoveAll(path); err != nil {
				return nil, err
			}
			continue
		}
		l.known[info.ChainID] = info
	}
	return l, nil
}

func readLayerInfo(dir string) (layerInfo, error) {
	var info layerInfo
	b, err := os.ReadFile(filepath.Join(dir, "layer.json"))
	if err != nil {
		return info, err
	}
	return info, json.Unmarshal(b, &info)
}

// chainID is that of a layer with the given diff id on top of parent ("" for the lowest).
func chainID(parent, diffID string) string {
	if parent == "" {
		return diffID
	}
	sum := sha256.Sum256([]byte(parent + " " + diffID))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// path is the layer's directory.
func (l *layers) path(chain string) string {
	return filepath.Join(l.dir, strings.TrimPrefix(chain, "sha256:")[:20])
}

// fs is the layer's file tree.
func (l *layers) fs(chain string) string { return filepath.Join(l.path(chain), "fs") }

func (l *layers) info(chain string) (layerInfo, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	info, ok := l.known[chain]
	return info, ok
}

func (l *layers) hasAll(chain []string) bool {
	for _, c := range chain {
		if _, ok := l.info(c); !ok {
			return false
		}
	}
	return true
}

// unpack makes the layer with diffID on top of below (chain ids, bottom first) out of the
// uncompressed tar that open gives, unless it is there already. It checks the tar against
// diffID and is atomic: the layer appears complete or not at all.
func (l *layers) unpack(ctx context.Context, below []string, diffID string, open func() (io.ReadCloser, error)) (layerInfo, error) {
	parent := ""
	if n := len(below); n > 0 {
		parent = below[n-1]
	}
	chain := chainID(parent, diffID)
	if info, ok := l.info(chain); ok {
		return info, nil
	}
	tmp, err := os.MkdirTemp(l.dir, "tmp-")
	if err != nil {
		return layerInfo{}, err
	}
	defer os.RemoveAll(tmp)
	info, err := l.unpackInto(ctx, tmp, below, diffID, open)
	if err != nil {
		return layerInfo{}, fmt.Errorf("layer %s: %w", diffID, err)
	}
	info.ChainID, info.DiffID = chain, diffID
	return info, l.publish(tmp, info)
}

func (l *layers) unpackInto(ctx context.Context, tmp string, below []string, diffID string, open func() (io.ReadCloser, error)) (layerInfo, error) {
	rc, err := open()
	if err != nil {
		return layerInfo{}, err
	}
	defer rc.Close()
	lower := make([]string, 0, len(below))
	for i := len(below) - 1; i >= 0; i-- {
		lower = append(lower, l.fs(below[i]))
	}
	hash := sha256.New()
	stream := io.TeeReader(rc, hash)
	u, err := newUnpacker(filepath.Join(tmp, "fs"), lower, l.limits)
	if err != nil {
		return layerInfo{}, err
	}
	defer u.close()
	if err := u.apply(ctx, stream); err != nil {
		return layerInfo{}, err
	}
	// What follows the end mark belongs to the digest; it is padding, so it is short.
	if _, err := io.Copy(io.Discard, io.LimitReader(stream, 64<<20)); err != nil {
		return layerInfo{}, err
	}
	if got := "sha256:" + hex.EncodeToString(hash.Sum(nil)); got != diffID {
		return layerInfo{}, fmt.Errorf("%w: content has digest %s", ErrBadArchive, got)
	}
	return layerInfo{Bytes: u.bytes, Files: u.entries}, nil
}

// publish makes a finished layer durable, then visible.
func (l *layers) publish(tmp string, info layerInfo) error {
	b, err := json.Marshal(info)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, "layer.json"), b, 0o600); err != nil {
		return err
	}
	if err := syncFS(tmp); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.known[info.ChainID]; ok {
		return nil // another pull was faster
	}
	if err := os.Rename(tmp, l.path(info.ChainID)); err != nil {
		return err
	}
	l.known[info.ChainID] = info
	return nil
}

// syncFS writes out the file system that holds dir: one call for a whole tree.
func syncFS(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// prune deletes the layers outside used. The caller keeps others from adding any.
func (l *layers) prune(used map[string]bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for chain := range l.known {
		if used[chain] {
			continue
		}
		// Renamed first, so that a crash cannot leave half a layer under its name.
		gone := filepath.Join(l.dir, "tmp-gone-"+filepath.Base(l.path(chain)))
		delete(l.known, chain)
		if err := os.Rename(l.path(chain), gone); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.RemoveAll(gone))
	}
	return errors.Join(errs...)
}

func (l *layers) usage() (bytes, files uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, info := range l.known {
		bytes += uint64(info.Bytes)
		files += uint64(info.Files)
	}
	return bytes, files
}
