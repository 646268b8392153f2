package testimage

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// HelloName is the image's reference.
const HelloName = "kontiki.local/hello:latest"

// helloPath is where the program is inside the image.
const helloPath = "hello"

// Hello returns the image around the program hello (cmd/hello, linked statically).
func Hello(program []byte) (v1.Image, error) {
	layerTar, err := layer(program)
	if err != nil {
		return nil, err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(layerTar)), nil
	})
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config.Entrypoint = []string{"/" + helloPath}
	config.Config.Env = []string{"PATH=/"}
	config.Config.WorkingDir = "/"
	return mutate.ConfigFile(image, config)
}

// WriteHello writes the image as a `docker save` archive, whole or not at all.
func WriteHello(path string, program []byte) error {
	image, err := Hello(program)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(HelloName)
	if err != nil {
		return err
	}
	if err := tarball.WriteToFile(path+".new", tag, image); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(path+".new", path)
}

// layer is the one layer: the program, somebody to run it as, and a place for temporary files.
// Every time stamp is the epoch, so that the bytes depend on the contents alone.
func layer(program []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	files := []struct {
		name string
		mode int64
		data string
	}{
		{"etc/", 0o755, ""},
		{"etc/passwd", 0o644, "root:x:0:0:root:/:/hello\nnobody:x:65534:65534:nobody:/:/hello\n"},
		{"etc/group", 0o644, "root:x:0:\nnogroup:x:65534:\n"},
		{"tmp/", 0o1777, ""},
		{helloPath, 0o755, string(program)},
	}
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg}
		if f.name[len(f.name)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
