package admission

import (
	"errors"
	"fmt"
	"path/filepath"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"
)

// configurable are the plugins that take a configuration.
var configurable = []string{"PodSecurity"}

// ErrConfiguration: the file of --admission-control-config-file is not what it has to be.
var ErrConfiguration = errors.New("admission configuration")

// ParseConfiguration reads an AdmissionConfiguration (apiserver.config.k8s.io/v1) into the configurations by plugin. Those
// that it names by a path are read by read; a path that is not absolute is one beside the file in dir.
func ParseConfiguration(data []byte, dir string, read func(path string) ([]byte, error)) (map[string][]byte, error) {
	var file apiserverv1.AdmissionConfiguration
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfiguration, err)
	}
	if want := apiserverv1.SchemeGroupVersion.String(); file.APIVersion != want || file.Kind != "AdmissionConfiguration" {
		return nil, fmt.Errorf("%w: it is a %q of %q, and has to be an \"AdmissionConfiguration\" of %q", ErrConfiguration, file.Kind, file.APIVersion, want)
	}
	out := map[string][]byte{}
	for _, p := range file.Plugins {
		if _, twice := out[p.Name]; twice {
			return nil, fmt.Errorf("%w: plugin %q is there twice", ErrConfiguration, p.Name)
		}
		switch {
		case p.Configuration != nil:
			out[p.Name] = p.Configuration.Raw
		case p.Path != "":
			path := p.Path
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			content, err := read(path)
			if err != nil {
				return nil, fmt.Errorf("%w: plugin %q: %w", ErrConfiguration, p.Name, err)
			}
			out[p.Name] = content
		default:
			return nil, fmt.Errorf("%w: plugin %q has neither configuration nor path", ErrConfiguration, p.Name)
		}
	}
	return out, nil
}
