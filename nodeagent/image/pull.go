package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Pull fetches the image called ref for this machine's architecture and returns it. auth
// may be nil. Layers that are here already are not fetched again.
func (s *Store) Pull(ctx context.Context, ref string, auth authn.Authenticator) (*Image, error) {
	named, err := parseReference(ref)
	if err != nil {
		return nil, err
	}
	if auth == nil {
		auth = authn.Anonymous
	}
	defer s.pulls.lock(named.Name())()
	s.inUse.RLock()
	defer s.inUse.RUnlock()

	hosts, err := readMirrors(s.cfg.HostsFile)
	if err != nil {
		return nil, err
	}
	sources, err := hosts.sources(named)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, src := range sources {
		img, err := s.pullFrom(ctx, named, src, auth)
		if err == nil {
			return img, nil
		}
		errs = append(errs, fmt.Errorf("pull %s: %w", src, err))
	}
	return nil, errors.Join(errs...)
}

// pullFrom pulls from src, which is named itself or a mirror of it.
func (s *Store) pullFrom(ctx context.Context, named, src name.Reference, auth authn.Authenticator) (*Image, error) {
	desc, err := remote.Get(src,
		remote.WithContext(ctx), remote.WithAuth(auth), remote.WithUserAgent("kontiki"),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		return nil, err
	}
	img, err := desc.Image()
	if err != nil {
		return nil, err
	}
	names := names{digests: []string{digestName(named, desc.Digest.String())}}
	if tag, ok := named.(name.Tag); ok {
		names.tags = []string{familiar(tag)}
	}
	return s.store(ctx, img, names)
}

// names are what a new image is called, in full form.
type names struct{ tags, digests []string }

// store unpacks the layers of img that are missing, bottom first, and records it.
func (s *Store) store(ctx context.Context, img v1.Image, called names) (*Image, error) {
	id, err := img.ConfigName()
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	contents, err := img.Layers()
	if err != nil {
		return nil, err
	}
	if len(contents) != len(config.RootFS.DiffIDs) {
		return nil, fmt.Errorf("%w: %d layers, but the configuration has %d", ErrBadArchive, len(contents), len(config.RootFS.DiffIDs))
	}
	rec := &Image{ID: id.String(), Tags: called.tags, Digests: called.digests, Config: *config}
	for i, diffID := range config.RootFS.DiffIDs {
		open := func() (io.ReadCloser, error) { return contents[i].Uncompressed() }
		info, err := s.layers.unpack(ctx, rec.Chain, diffID.String(), open)
		if err != nil {
			return nil, err
		}
		rec.Chain = append(rec.Chain, info.ChainID)
		rec.Size += info.Bytes
	}
	return s.add(rec)
}
