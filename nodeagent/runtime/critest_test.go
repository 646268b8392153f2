package runtime_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
)

// TestCRITest runs Kubernetes' own tests of CRI runtimes against this one, with images made
// here in the names of those it wants. Its output is the verdict; specs that need an image from
// the network fail. It takes minutes, so it runs only when asked to:
//
//	go test -c -o critest sigs.k8s.io/cri-tools/cmd/critest
//	KONTIKI_CRITEST=./critest KONTIKI_BUSYBOX=/bin/busybox go test -run TestCRITest ./nodeagent/runtime -v
//
// busybox must be Debian's dynamically linked one.
func TestCRITest(t *testing.T) {
	critest, busybox := os.Getenv("KONTIKI_CRITEST"), os.Getenv("KONTIKI_BUSYBOX")
	if critest == "" || busybox == "" {
		t.Skip("needs KONTIKI_CRITEST (the program) and KONTIKI_BUSYBOX")
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	hosts := filepath.Join(t.TempDir(), "hosts")
	var lines strings.Builder
	for _, r := range []string{"registry.k8s.io", "gcr.io", "k8s.gcr.io", "docker.io"} {
		lines.WriteString(r + " " + server.URL + "\n")
	}
	require.NoError(t, os.WriteFile(hosts, []byte(lines.String()), 0o600))
	pushTestImages(t, strings.TrimPrefix(server.URL, "http://"), busybox)

	h := newHost(t)
	require.NoError(t, h.r.Close())
	h.cfg.HostsFile = hosts
	h.start()
	socket := filepath.Join(t.TempDir(), "cri.sock")
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- h.r.ServeUnix(ctx, socket) }()
	cmd := exec.Command(critest, "--runtime-endpoint=unix://"+socket, "--image-endpoint=unix://"+socket, "--ginkgo.no-color")
	cmd.Args = append(cmd.Args, strings.Fields(os.Getenv("KONTIKI_CRITEST_FLAGS"))...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	cancel()
	require.ErrorIs(t, <-served, context.Canceled)
	require.NoError(t, err)
}

// pushTestImages makes every image that critest names.
func pushTestImages(t *testing.T, host, busybox string) {
	box := busyboxLayer(t, busybox, "")
	dir, err := programs()
	require.NoError(t, err)
	web := busyboxLayer(t, busybox, filepath.Join(dir, "hello"))
	image := func(layer []byte, change func(*v1.Config)) v1.Image {
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer)), nil })
		require.NoError(t, err)
		img, err := mutate.AppendLayers(empty.Image, l)
		require.NoError(t, err)
		config, err := img.ConfigFile()
		require.NoError(t, err)
		config = config.DeepCopy()
		config.OS, config.Architecture = "linux", goruntime.GOARCH
		config.Config.Cmd = []string{"sh"}
		change(&config.Config)
		img, err = mutate.ConfigFile(img, config)
		require.NoError(t, err)
		return img
	}
	user := func(u string) func(*v1.Config) { return func(c *v1.Config) { c.User = u } }
	label := func(l string) func(*v1.Config) { return func(c *v1.Config) { c.Labels = map[string]string{"test": l} } }
	serve := func(address string) func(*v1.Config) {
		// As nginx does, so that specs find its process id; and as httpd logs.
		script := "mkdir -p /var/run; echo $$ > /var/run/nginx.pid; echo 'AH00094: Command line'; exec nginx serve " + address
		return func(c *v1.Config) { c.Cmd = []string{"sh", "-c", script} }
	}
	const staging = "k8s-staging-cri-tools/"
	for ref, img := range map[string]v1.Image{
		"e2e-test-images/busybox:1.29-2":           image(box, label("")),
		"e2e-test-images/nginx:1.14-2":             image(web, serve(":80")),
		"e2e-test-images/httpd:2.4.39-4":           image(web, serve(":80")),
		"pause:3.9":                                image(box, label("pause")),
		staging + "hostnet-nginx-amd64":            image(web, serve(":12003")),
		staging + "hostnet-nginx-arm64":            image(web, serve(":12003")),
		staging + "test-image-user-uid":            image(box, user("1002")),
		staging + "test-image-user-username":       image(box, user("www-data")),
		staging + "test-image-user-uid-group":      image(box, user("1003:1004")),
		staging + "test-image-user-username-group": image(box, user("www-data:1004")),
		staging + "test-image-predefined-group":    image(box, user("1000")),
		staging + "test-image-latest":              image(box, label("latest")),
		staging + "test-image-tag:test":            image(box, label("tag")),
		staging + "test-image-tag:all":             image(box, label("all")),
		staging + "test-image-1":                   image(box, label("1")),
		staging + "test-image-2":                   image(box, label("2")),
		staging + "test-image-3":                   image(box, label("3")),
		staging + "test-image-tags:1":              image(box, label("tags")),
		staging + "test-image-tags:2":              image(box, label("tags")),
		staging + "test-image-tags:3":              image(box, label("tags")),
	} {
		tag, err := name.NewTag(host + "/" + ref)
		require.NoError(t, err)
		require.NoError(t, remote.Write(tag, img))
	}
}

// busyboxLayer is a root file system around busybox, the libraries it needs and, where its
// path is given, hello.
func busyboxLayer(t *testing.T, busybox, hello string) []byte {
	files := map[string]string{"bin/busybox": busybox}
	if hello != "" {
		files["bin/nginx"] = hello
	}
	if ipcs, err := exec.LookPath("ipcs"); err == nil {
		files["sbin/ipcs"] = ipcs // finds itself before busybox's, which prints another format
	}
	libraries, err := exec.Command("ldd", busybox).Output()
	require.NoError(t, err)
	for _, word := range strings.Fields(string(libraries)) {
		if strings.HasPrefix(word, "/lib") {
			files[word[1:]] = word
		}
	}
	list, err := exec.Command(busybox, "--list").Output()
	require.NoError(t, err)
	return tarLayer(t, files, strings.Fields(string(list)))
}

// tarLayer packs files (path in the image → path here), and hard links in /bin to the first.
func tarLayer(t *testing.T, files map[string]string, applets []string) []byte {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	add := func(hdr *tar.Header, body []byte) {
		hdr.Size = int64(len(body))
		require.NoError(t, w.WriteHeader(hdr))
		_, err := w.Write(body)
		require.NoError(t, err)
	}
	add(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}, nil)
	add(&tar.Header{Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33:www-data:/var/www:/bin/false\ndefault-user:x:1000:1000::/home:/bin/sh\nnobody:x:65534:65534:::\n"))
	add(&tar.Header{Name: "etc/group", Mode: 0o644}, []byte("root:x:0:\nwww-data:x:33:\ndefault-user:x:1000:\ngroup-defined-in-image:x:50000:default-user\n"))
	// Debian's busybox has no pgrep.
	add(&tar.Header{Name: "bin/pgrep", Mode: 0o755}, []byte("#!/bin/sh\nps -o pid,args | grep -v -e grep -e /proc | grep -w \"$1\"\n"))
	for in, from := range files {
		b, err := os.ReadFile(from)
		require.NoError(t, err)
		add(&tar.Header{Name: in, Mode: 0o755}, b)
	}
	for _, a := range applets {
		if a != "busybox" {
			add(&tar.Header{Name: "bin/" + a, Typeflag: tar.TypeLink, Linkname: "bin/busybox"}, nil)
		}
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}
