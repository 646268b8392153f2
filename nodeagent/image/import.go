package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/google/go-containerregistry/pkg/name"
)

// Import adds the images of an archive: what `docker save` writes, a tar of an OCI image
// layout, or a layout directory. It returns the images in the archive's order.
func (s *Store) Import(ctx context.Context, path string) ([]*Image, error) {
	s.inUse.RLock()
	defer s.inUse.RUnlock()
	imgs, err := s.importAny(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", path, err)
	}
	return imgs, nil
}

func (s *Store) importAny(ctx context.Context, path string) ([]*Image, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return s.importLayout(ctx, path)
	}
	// docker save of today writes both formats into one tar; its own manifest has the names.
	opener := func() (io.ReadCloser, error) { return os.Open(path) }
	manifest, err := tarball.LoadManifest(opener)
	if err == nil {
		return s.importDocker(ctx, opener, manifest)
	}
	tmp, err := os.MkdirTemp(s.layers.dir, "tmp-import-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if err := s.extractLayout(ctx, path, tmp); err != nil {
		return nil, err
	}
	return s.importLayout(ctx, filepath.Join(tmp, "layout"))
}

func (s *Store) importDocker(ctx context.Context, opener tarball.Opener, manifest tarball.Manifest) ([]*Image, error) {
	var out []*Image
	for _, desc := range manifest {
		var called names
		var tag *name.Tag // which image of the archive to open; nil when there is one
		for _, t := range desc.RepoTags {
			parsed, err := name.NewTag(t)
			if err != nil {
				return nil, fmt.Errorf("%w: %v", ErrBadReference, err)
			}
			tag = &parsed
			called.tags = append(called.tags, familiar(parsed))
		}
		img, err := tarball.Image(opener, tag)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBadArchive, err)
		}
		rec, err := s.store(ctx, img, called)
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	return out, nil
}

// extractLayout unpacks the tar of an OCI layout: plain files in plain directories.
func (s *Store) extractLayout(ctx context.Context, path, dir string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	u, err := newUnpacker(filepath.Join(dir, "layout"), nil, s.layers.limits)
	if err != nil {
		return err
	}
	defer u.close()
	tr := tar.NewReader(f)
	for ctx.Err() == nil {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrBadArchive, err)
		}
		if hdr.Typeflag != tar.TypeReg && hdr.Typeflag != tar.TypeDir {
			continue
		}
		hdr.Uid, hdr.Gid, hdr.PAXRecords = os.Getuid(), os.Getgid(), nil
		if err := u.entry(hdr, tr); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// importLayout imports every image of the index, choosing this machine's platform where
// an entry is an index itself.
func (s *Store) importLayout(ctx context.Context, dir string) ([]*Image, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: neither docker archive nor OCI layout: %v", ErrBadArchive, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadArchive, err)
	}
	var out []*Image
	for _, desc := range manifest.Manifests {
		img, err := platformImage(index, desc)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBadArchive, err)
		}
		if img == nil {
			continue
		}
		rec, err := s.store(ctx, img, layoutNames(desc))
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: no image for linux/%s", ErrBadArchive, runtime.GOARCH)
	}
	return out, nil
}

// platformImage is the image that desc means for this machine, nil when there is none.
func platformImage(index v1.ImageIndex, desc v1.Descriptor) (v1.Image, error) {
	if desc.MediaType.IsImage() {
		return index.Image(desc.Digest)
	}
	if !desc.MediaType.IsIndex() {
		return nil, nil
	}
	inner, err := index.ImageIndex(desc.Digest)
	if err != nil {
		return nil, err
	}
	manifest, err := inner.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, d := range manifest.Manifests {
		if d.MediaType.IsImage() && (d.Platform == nil || d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH) {
			return inner.Image(d.Digest)
		}
	}
	return nil, nil
}

// layoutNames reads the name of an image from the annotations that containerd, docker and
// skopeo write. A reference that is only a tag names nothing, and the digest alone does.
func layoutNames(desc v1.Descriptor) names {
	for _, key := range []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"} {
		text := desc.Annotations[key]
		if !strings.ContainsAny(text, "/:") {
			continue
		}
		if ref, err := name.NewTag(text); err == nil {
			return names{tags: []string{familiar(ref)}, digests: []string{digestName(ref, desc.Digest.String())}}
		}
	}
	return names{}
}
