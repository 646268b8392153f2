package testimage

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Tree is an image whose one layer is a directory tree, as .ci/conformance-images.sh lays them out for Kubernetes' own tests.
type Tree struct {
	Root            string   // the directory that becomes /
	Names           []string // references that the image has in the archive, at least one
	Entrypoint, Cmd []string
}

// WriteTree writes the image as a `docker save` archive, whole or not at all. Everything in it belongs to root and is of the
// epoch, so that the bytes depend on the contents alone.
func WriteTree(path string, t Tree) error {
	image, err := t.image()
	if err != nil {
		return fmt.Errorf("image of %s: %w", t.Root, err)
	}
	named := map[name.Tag]v1.Image{}
	for _, reference := range t.Names {
		tag, err := name.NewTag(reference)
		if err != nil {
			return err
		}
		named[tag] = image
	}
	if len(named) == 0 {
		return errors.New("an image in an archive needs a name")
	}
	if err := tarball.MultiWriteToFile(path+".new", named); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(path+".new", path)
}

func (t Tree) image() (v1.Image, error) {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(writeTree(writer, t.Root)) }()
		return reader, nil
	})
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config.Entrypoint, config.Config.Cmd = t.Entrypoint, t.Cmd
	config.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	return mutate.ConfigFile(image, config)
}

// writeTree writes a directory as a tar stream, in the order of names.
func writeTree(out io.Writer, root string) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		return writeEntry(w, strings.TrimPrefix(path, root+string(filepath.Separator)), path, entry)
	})
	return errors.Join(err, w.Close())
}

func writeEntry(w *tar.Writer, name, path string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	target := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if target, err = os.Readlink(path); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	header.Name, header.ModTime, header.Uid, header.Gid, header.Uname, header.Gname = name, time.Unix(0, 0), 0, 0, "", ""
	if info.IsDir() {
		header.Name += "/"
	}
	if err := w.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
