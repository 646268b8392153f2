package image

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
)

// file is one entry of a layer in a test.
type file struct {
	name, body, link string
	kind             byte // tar.TypeReg when 0 and there is a body, tar.TypeDir when the name ends in /
	mode             int64
	uid, gid         int
	xattr            map[string]string
}

// layerTar makes a layer's tar.
func layerTar(t testing.TB, files ...file) []byte {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		hdr := &tar.Header{Name: f.name, Linkname: f.link, Typeflag: f.kind, Mode: f.mode, Uid: f.uid, Gid: f.gid, Size: int64(len(f.body))}
		if hdr.Typeflag == 0 {
			hdr.Typeflag = tar.TypeReg
			if strings.HasSuffix(f.name, "/") {
				hdr.Typeflag = tar.TypeDir
			}
		}
		if hdr.Mode == 0 {
			hdr.Mode = 0o755
		}
		for k, v := range f.xattr {
			if hdr.PAXRecords == nil {
				hdr.PAXRecords = map[string]string{}
			}
			hdr.PAXRecords["SCHILY.xattr."+k] = v
		}
		require.NoError(t, w.WriteHeader(hdr))
		_, err := w.Write([]byte(f.body))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}

// makeImage puts layers into an image.
func makeImage(t testing.TB, layers ...[]byte) v1.Image {
	img := empty.Image
	for _, b := range layers {
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil })
		require.NoError(t, err)
		img, err = mutate.AppendLayers(img, l)
		require.NoError(t, err)
	}
	config, err := img.ConfigFile()
	require.NoError(t, err)
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config.Cmd = []string{"/app"}
	img, err = mutate.ConfigFile(img, config)
	require.NoError(t, err)
	return img
}

func needRoot(t testing.TB) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: layers are unpacked with their owners")
	}
}

func openStore(t testing.TB, cfg Config) *Store {
	needRoot(t)
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	s, err := Open(cfg)
	require.NoError(t, err)
	return s
}

// unpackLayers unpacks tars on top of each other and returns the chain.
func unpackLayers(t testing.TB, s *Store, tars ...[]byte) ([]string, error) {
	var chain []string
	for _, b := range tars {
		sum := sha256.Sum256(b)
		info, err := s.layers.unpack(context.Background(), chain, "sha256:"+hex.EncodeToString(sum[:]),
			func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil })
		if err != nil {
			return chain, err
		}
		chain = append(chain, info.ChainID)
	}
	return chain, nil
}

// rootfses calls f with the root file system of the layers, both as overlay and as copy.
func rootfses(t *testing.T, f func(t *testing.T, root string), tars ...[]byte) {
	s := openStore(t, Config{})
	chain, err := unpackLayers(t, s, tars...)
	require.NoError(t, err)
	run := func(t *testing.T) {
		dir := t.TempDir()
		root, err := s.MountRootfs(&Image{ID: "test", Chain: chain}, dir)
		require.NoError(t, err)
		defer func() { require.NoError(t, UnmountRootfs(dir)) }()
		f(t, root)
	}
	t.Run("overlay", func(t *testing.T) {
		if !s.overlay {
			t.Skip("needs overlayfs")
		}
		run(t)
	})
	s.overlay = false
	t.Run("copy", run)
}

func TestReferences_ND09(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for in, want := range map[string]string{
		"a":                    "docker.io/library/a:latest",
		"a:latest":             "docker.io/library/a:latest",
		"a:1":                  "docker.io/library/a:1",
		"a@" + digest:          "docker.io/library/a@" + digest,
		"a:latest@" + digest:   "docker.io/library/a@" + digest,
		"reg:5000/a":           "reg:5000/a:latest",
		"kontiki.local/hello":  "kontiki.local/hello:latest",
		"docker.io/library/a":  "docker.io/library/a:latest",
		"docker.io/a/b:1":      "docker.io/a/b:1",
		"index.docker.io/x":    "docker.io/library/x:latest",
		"example.com/a/b/c:v2": "example.com/a/b/c:v2",
	} {
		got, err := Normalize(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for _, bad := range []string{"", "A", "a b", "a:", "a@sha256:12", "http://a/b"} {
		_, err := Normalize(bad)
		require.ErrorIs(t, err, ErrBadReference, bad)
	}
}

func TestImportListRemovePrune(t *testing.T) {
	s := openStore(t, Config{})
	base := layerTar(t, file{name: "app", body: "v1"})
	one := makeImage(t, base)
	two := makeImage(t, base, layerTar(t, file{name: "more", body: "x"}))
	dir := t.TempDir()
	docker := filepath.Join(dir, "docker.tar")
	tags := map[name.Tag]v1.Image{}
	for ref, img := range map[string]v1.Image{"a:1": one, "reg:5000/b:2": two} {
		tag, err := name.NewTag(ref)
		require.NoError(t, err)
		tags[tag] = img
	}
	require.NoError(t, tarball.MultiWriteToFile(docker, tags))
	imgs, err := s.Import(t.Context(), docker)
	require.NoError(t, err)
	require.Len(t, imgs, 2)
	require.Len(t, s.layers.known, 2, "the base layer is shared")

	got, err := s.Get("docker.io/library/a:1")
	require.NoError(t, err)
	require.Equal(t, []string{"/app"}, got.Config.Config.Cmd)
	byID, err := s.Get(got.ID)
	require.NoError(t, err)
	require.Same(t, got, byID)
	_, err = s.Get("a:2")
	require.ErrorIs(t, err, ErrNotFound)

	again, err := Open(s.cfg) // what is there survives a restart
	require.NoError(t, err)
	require.Equal(t, s.List(), again.List())

	require.NoError(t, s.Remove("reg:5000/b:2"))
	require.NoError(t, s.Remove("reg:5000/b:2"), "removing what is gone is no error")
	require.NoError(t, s.Prune(nil))
	require.Len(t, s.layers.known, 1)
	require.NoError(t, s.Remove(got.ID))
	require.NoError(t, s.Prune(map[string]bool{got.Chain[0]: true}))
	require.Len(t, s.layers.known, 1, "a container still uses it")
	require.NoError(t, s.Prune(nil))
	require.Empty(t, s.layers.known)
	entries, err := os.ReadDir(s.layers.dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestImportMovesTag(t *testing.T) {
	s := openStore(t, Config{})
	var ids []string
	for _, body := range []string{"v1", "v2"} {
		path := filepath.Join(t.TempDir(), "i.tar")
		tag, err := name.NewTag("kontiki.local/app:latest")
		require.NoError(t, err)
		require.NoError(t, tarball.WriteToFile(path, tag, makeImage(t, layerTar(t, file{name: "app", body: body}))))
		imgs, err := s.Import(t.Context(), path)
		require.NoError(t, err)
		ids = append(ids, imgs[0].ID)
	}
	got, err := s.Get("kontiki.local/app")
	require.NoError(t, err)
	require.Equal(t, ids[1], got.ID)
	old, err := s.Get(ids[0])
	require.NoError(t, err)
	require.Empty(t, old.Tags)
}

func TestImportOCILayout(t *testing.T) {
	s := openStore(t, Config{})
	dir := t.TempDir()
	p, err := layout.Write(dir, empty.Index)
	require.NoError(t, err)
	img := makeImage(t, layerTar(t, file{name: "app", body: "v1"}))
	require.NoError(t, p.AppendImage(img, layout.WithAnnotations(map[string]string{"io.containerd.image.name": "example.com/x:1"})))
	archive := filepath.Join(t.TempDir(), "oci.tar")
	tarDir(t, dir, archive)

	imgs, err := s.Import(t.Context(), archive)
	require.NoError(t, err)
	require.Equal(t, []string{"example.com/x:1"}, imgs[0].Tags)
	digest, err := img.Digest()
	require.NoError(t, err)
	byDigest, err := s.Get("example.com/x@" + digest.String())
	require.NoError(t, err)
	require.Equal(t, imgs[0].ID, byDigest.ID)
	_, err = s.Import(t.Context(), dir)
	require.NoError(t, err, "the directory itself")
}

func tarDir(t *testing.T, dir, to string) {
	f, err := os.Create(to)
	require.NoError(t, err)
	defer f.Close()
	w := tar.NewWriter(f)
	require.NoError(t, w.AddFS(os.DirFS(dir)))
	require.NoError(t, w.Close())
}

func TestImportBadArchives(t *testing.T) {
	s := openStore(t, Config{})
	for name, content := range map[string]string{
		"empty": "", "text": "this is no archive", "tar": string(layerTar(t, file{name: "x", body: "y"})),
		"index": string(layerTar(t, file{name: "index.json", body: "{}"}, file{name: "oci-layout", body: "{}"})),
	} {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := s.Import(t.Context(), path)
		require.ErrorIs(t, err, ErrBadArchive, name)
	}
	_, err := s.Import(t.Context(), "/does/not/exist")
	require.ErrorIs(t, err, os.ErrNotExist)
	entries, err := os.ReadDir(s.layers.dir)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is left of a failed import")
}

// withAuth lets only user:password in.
func withAuth(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "user" || password != "password" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"who are you"}]}`, http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func push(t *testing.T, server *httptest.Server, repo string, img v1.Image, auth authn.Authenticator) string {
	ref, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/" + repo)
	require.NoError(t, err)
	require.NoError(t, remote.Write(ref, img, remote.WithAuth(auth)))
	return ref.Name()
}

func TestPull(t *testing.T) {
	s := openStore(t, Config{})
	server := httptest.NewServer(withAuth(registry.New(registry.Logger(log.New(io.Discard, "", 0)))))
	defer server.Close()
	auth := &authn.Basic{Username: "user", Password: "password"}
	img := makeImage(t, layerTar(t, file{name: "app", body: "v1"}))
	ref := push(t, server, "team/app:1", img, auth)

	_, err := s.Pull(t.Context(), ref, nil)
	require.ErrorContains(t, err, "who are you", "the registry's own words reach the pod's event")
	got, err := s.Pull(t.Context(), ref, auth)
	require.NoError(t, err)
	require.Equal(t, []string{ref}, got.Tags)
	require.Len(t, got.Digests, 1)
	pulledAgain, err := s.Pull(t.Context(), got.Digests[0], auth)
	require.NoError(t, err)
	require.Equal(t, got.ID, pulledAgain.ID)
	require.Equal(t, []string{ref}, pulledAgain.Tags, "a pull by digest takes no name away")

	server.Close()
	_, err = s.Pull(t.Context(), ref, auth)
	require.Error(t, err)
	_, err = s.Get(ref)
	require.NoError(t, err, "the image stays when the registry is down")
}

func TestPullFromMirror(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	push(t, server, "library/nginx:1", makeImage(t, layerTar(t, file{name: "app", body: "v1"})), authn.Anonymous)
	hosts := filepath.Join(t.TempDir(), "hosts")
	require.NoError(t, os.WriteFile(hosts, []byte("# mirrors\ndocker.io "+server.URL+"\n"), 0o600))
	s := openStore(t, Config{HostsFile: hosts})
	got, err := s.Pull(t.Context(), "nginx:1", nil)
	require.NoError(t, err)
	require.Equal(t, []string{"docker.io/library/nginx:1"}, got.Tags)
	require.NoError(t, os.WriteFile(hosts, []byte("docker.io ftp://x\n"), 0o600))
	_, err = s.Pull(t.Context(), "nginx:1", nil)
	require.ErrorContains(t, err, "hosts:1")
}
