package image

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// dockerHub is how go-containerregistry calls the default registry; Kubernetes shows docker.io.
const dockerHub = "index.docker.io"

var idPattern = regexp.MustCompile(`^(sha256:)?[0-9a-f]{64}$`)

// parseReference reads a name in any form that Kubernetes allows: a, a:1, a@sha256:…,
// a:1@sha256:… (the digest wins), registry:5000/a. A name without a registry is docker.io's.
func parseReference(s string) (name.Reference, error) {
	ref, err := name.ParseReference(s)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %v", ErrBadReference, s, err)
	}
	return ref, nil
}

// familiar is the full name of a reference as Kubernetes writes it: docker.io/library/nginx:latest.
func familiar(ref name.Reference) string { return displayRegistry(ref.Name()) }

// digestName is the repository of ref with a digest: docker.io/library/nginx@sha256:….
func digestName(ref name.Reference, digest string) string {
	return displayRegistry(ref.Context().Name()) + "@" + digest
}

func displayRegistry(s string) string {
	if rest, ok := strings.CutPrefix(s, dockerHub+"/"); ok {
		return "docker.io/" + rest
	}
	return s
}

// Normalize is the full name under which an image called s is kept.
func Normalize(s string) (string, error) {
	ref, err := parseReference(s)
	if err != nil {
		return "", err
	}
	return familiar(ref), nil
}
