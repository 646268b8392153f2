package admission

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseConfiguration(t *testing.T) {
	read := func(path string) ([]byte, error) {
		if path != "/etc/kontiki/pod.yaml" {
			return nil, errors.New("no such file: " + path)
		}
		return []byte("kind: PodSecurityConfiguration"), nil
	}
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
	got, err := ParseConfiguration([]byte(head+"- {name: PodSecurity, path: pod.yaml}\n- {name: Other, configuration: {a: 1}}"), "/etc/kontiki", read)
	require.NoError(t, err)
	require.Equal(t, "kind: PodSecurityConfiguration", string(got["PodSecurity"]))
	require.JSONEq(t, `{"a":1}`, string(got["Other"]))
	for text, message := range map[string]string{
		head + "- {name: PodSecurity}":                                          `plugin "PodSecurity" has neither configuration nor path`,
		head + "- {name: PodSecurity, path: /gone}":                             `plugin "PodSecurity": no such file: /gone`,
		head + "- {name: A, configuration: {}}\n- {name: A, configuration: {}}": `plugin "A" is there twice`,
		head + "- {nom: A}":                                                     "unknown field",
		"kind: Other":                                                           `it is a "Other" of ""`,
		"{":                                                                     "admission configuration",
	} {
		_, err := ParseConfiguration([]byte(text), "", read)
		require.ErrorIs(t, err, ErrConfiguration)
		require.ErrorContains(t, err, message)
	}
}
