package image

import (
	"bufio"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// A hosts file says where to look for the images of a registry first. Each line names a
// registry and one or more base URLs, tried in order before the registry itself:
//
//	# registry    mirrors
//	docker.io     https://mirror.example http://127.0.0.1:5000
//
// It is read at each pull, so that a change needs no restart.
type mirrors map[string][]*url.URL

func readMirrors(path string) (mirrors, error) {
	m := mirrors{}
	if path == "" {
		return m, nil
	}
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		for _, w := range words[1:] {
			u, err := url.Parse(w)
			if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, u.Scheme) {
				return nil, fmt.Errorf("%s:%d: %q is no http or https URL", path, n, w)
			}
			m[words[0]] = append(m[words[0]], u)
		}
	}
	return m, lines.Err()
}

// sources lists the references to try for ref, in order: mirrors, then ref itself.
func (m mirrors) sources(ref name.Reference) ([]name.Reference, error) {
	registry := ref.Context().RegistryStr()
	if registry == dockerHub {
		registry = "docker.io"
	}
	var out []name.Reference
	for _, u := range m[registry] {
		at, err := mirrored(ref, u)
		if err != nil {
			return nil, err
		}
		out = append(out, at)
	}
	return append(out, ref), nil
}

func mirrored(ref name.Reference, u *url.URL) (name.Reference, error) {
	var opts []name.Option
	if u.Scheme == "http" {
		opts = append(opts, name.Insecure)
	}
	repo := u.Host + strings.TrimSuffix(u.Path, "/") + "/" + ref.Context().RepositoryStr()
	if _, ok := ref.(name.Digest); ok {
		return name.NewDigest(repo+"@"+ref.Identifier(), opts...)
	}
	return name.NewTag(repo+":"+ref.Identifier(), opts...)
}
