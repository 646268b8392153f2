package nodeagent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// dockerHub is how docker configuration files name the default registry.
const dockerHub = "index.docker.io"

// dockerConfig is the content of a kubernetes.io/dockerconfigjson secret.
type dockerConfig struct {
	Auths map[string]dockerAuth `json:"auths"`
}

type dockerAuth struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"` // base64 of username:password
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// credentials returns what the pod's imagePullSecrets hold for the image's registry. Without any it is one nil: an
// anonymous pull. Secrets that are absent or unreadable are skipped, as Kubernetes does.
func (w *worker) credentials(ctx context.Context, pod *corev1.Pod, image string) []*runtimeapi.AuthConfig {
	var out []*runtimeapi.AuthConfig
	for _, ref := range pod.Spec.ImagePullSecrets {
		s, err := w.a.objects.maxAge(0).Secret(ctx, pod.Namespace, ref.Name)
		if err != nil {
			w.log.Warn("image pull secret could not be read", "secret", ref.Name, "err", err)
			continue
		}
		auths, err := parseDockerConfig(s)
		if err != nil {
			w.log.Warn("image pull secret is malformed", "secret", ref.Name)
			continue
		}
		out = append(out, match(auths, image)...)
	}
	if len(out) == 0 {
		return []*runtimeapi.AuthConfig{nil}
	}
	return out
}

func parseDockerConfig(s *corev1.Secret) (map[string]dockerAuth, error) {
	if data, ok := s.Data[corev1.DockerConfigJsonKey]; ok {
		var c dockerConfig
		err := json.Unmarshal(data, &c)
		return c.Auths, err
	}
	var auths map[string]dockerAuth
	err := json.Unmarshal(s.Data[corev1.DockerConfigKey], &auths)
	return auths, err
}

// match returns the credentials whose registry, and path if one is given, the image is below.
func match(auths map[string]dockerAuth, image string) []*runtimeapi.AuthConfig {
	switch host, path, ok := strings.Cut(image, "/"); {
	case !ok || !strings.ContainsAny(host, ".:") && host != "localhost":
		image = dockerHub + "/" + image
	case host == "docker.io":
		image = dockerHub + "/" + path
	}
	var out []*runtimeapi.AuthConfig
	for server, a := range auths {
		name := strings.TrimPrefix(strings.TrimPrefix(server, "https://"), "http://")
		name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "/"), "/v1"), "/v2")
		if name == "docker.io" {
			name = dockerHub
		}
		if !strings.HasPrefix(image, name+"/") {
			continue
		}
		c := &runtimeapi.AuthConfig{Username: a.Username, Password: a.Password, ServerAddress: server,
			IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken}
		if both, err := base64.StdEncoding.DecodeString(a.Auth); err == nil && a.Username == "" {
			c.Username, c.Password, _ = strings.Cut(string(both), ":")
		}
		out = append(out, c)
	}
	return out
}
