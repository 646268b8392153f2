package encryption_test

import (
	"bytes"
	"crypto/aes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
	upstreamaes "k8s.io/apiserver/pkg/storage/value/encrypt/aes"
	upstreambox "k8s.io/apiserver/pkg/storage/value/encrypt/secretbox"

	"kontiki/apiserver/storage/encryption"
)

const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n"

// rawKey is the key that key writes into a file.
func rawKey(letter string) []byte { return []byte(strings.Repeat(letter, 32)) }

func key(name, letter string) string {
	return fmt.Sprintf("{name: %s, secret: %s}", name, base64.StdEncoding.EncodeToString(rawKey(letter)))
}

// file writes a configuration for secrets with providers.
func file(t *testing.T, path string, providers ...string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "encryption.yaml")
	}
	text := head + "resources: [{resources: [secrets], providers: [" + strings.Join(providers, ", ") + "]}]\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func open(t *testing.T, path string) *encryption.Encryption {
	t.Helper()
	e, err := encryption.Open(encryption.Config{Path: path})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

var secrets = schema.GroupResource{Resource: "secrets"}

const at = "/registry/secrets/default/s"

var plain = []byte("k8s\x00 not for everybody")

// TestProviders: what is written can be read, does not show what it is, is not the same twice, and says when it is damaged.
func TestProviders(t *testing.T) {
	p := startPlugin(t)
	for name, provider := range map[string]string{
		"aesgcm":    "{aesgcm: {keys: [" + key("one", "a") + "]}}",
		"aescbc":    "{aescbc: {keys: [" + key("one", "a") + "]}}",
		"secretbox": "{secretbox: {keys: [" + key("one", "a") + "]}}",
		"kms":       "{kms: {apiVersion: v2, name: one, endpoint: 'unix://" + p.socket + "'}}",
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, file(t, "", provider)).For(secrets)
			stored, err := r.Seal(at, plain)
			require.NoError(t, err)
			version := "v1"
			if name == "kms" {
				version = "v2"
			}
			require.True(t, bytes.HasPrefix(stored, []byte("k8s:enc:"+name+":"+version+":one:")), "%q", stored)
			require.NotContains(t, string(stored), "everybody")
			again, err := r.Seal(at, plain)
			require.NoError(t, err)
			require.NotEqual(t, stored, again)
			for _, value := range [][]byte{stored, again} {
				got, stale, err := r.Open(at, value)
				require.NoError(t, err)
				require.False(t, stale)
				require.Equal(t, plain, got)
			}
			if name == "aesgcm" || name == "kms" {
				_, _, err = r.Open("/registry/secrets/default/other", stored)
				require.ErrorIs(t, err, encryption.ErrDamaged, "it was moved")
			}
			for n := range len(stored) {
				_, _, err := r.Open(at, stored[:n])
				require.Error(t, err, "cut to %d bytes", n)
			}
		})
	}
}

// TestKubernetesReadsIt reads with kube-apiserver's code what this package writes, and the other way round.
func TestKubernetesReadsIt(t *testing.T) {
	block, err := aes.NewCipher(rawKey("a"))
	require.NoError(t, err)
	gcm, err := upstreamaes.NewGCMTransformer(block)
	require.NoError(t, err)
	for name, theirs := range map[string]value.Transformer{
		"aesgcm": gcm, "aescbc": upstreamaes.NewCBCTransformer(block), "secretbox": upstreambox.NewSecretboxTransformer([32]byte(rawKey("a"))),
	} {
		t.Run(name, func(t *testing.T) {
			prefix := []byte("k8s:enc:" + name + ":v1:one:")
			r := open(t, file(t, "", "{"+name+": {keys: ["+key("one", "a")+"]}}")).For(secrets)
			ours, err := r.Seal(at, plain)
			require.NoError(t, err)
			got, _, err := theirs.TransformFromStorage(t.Context(), bytes.TrimPrefix(ours, prefix), value.DefaultContext(at))
			require.NoError(t, err)
			require.Equal(t, plain, got)
			sealed, err := theirs.TransformToStorage(t.Context(), plain, value.DefaultContext(at))
			require.NoError(t, err)
			got, _, err = r.Open(at, append(prefix, sealed...))
			require.NoError(t, err)
			require.Equal(t, plain, got)
		})
	}
}

// TestRotation goes the way that docs/secrets-at-rest.md tells, from nothing to a second key.
func TestRotation(t *testing.T) {
	one, two := key("one", "a"), key("two", "b")
	path := file(t, "", "{identity: {}}")
	steps := []struct {
		keys  string
		stale bool // what the step before has written
	}{
		{"{secretbox: {keys: [" + one + "]}}, {identity: {}}", true},
		{"{secretbox: {keys: [" + one + ", " + two + "]}}", false},
		{"{secretbox: {keys: [" + two + ", " + one + "]}}", true},
		{"{secretbox: {keys: [" + two + "]}}", false},
		{"{identity: {}}, {secretbox: {keys: [" + two + "]}}", true},
	}
	stored, err := open(t, path).For(secrets).Seal(at, plain)
	require.NoError(t, err)
	require.Equal(t, plain, stored)
	for i, step := range steps {
		r := open(t, file(t, path, step.keys)).For(secrets)
		got, stale, err := r.Open(at, stored)
		require.NoError(t, err, "step %d", i)
		require.Equal(t, plain, got)
		require.Equal(t, step.stale, stale, "step %d", i)
		stored, err = r.Seal(at, got)
		require.NoError(t, err)
	}
}

// TestMissingKeys: the error says what is missing.
func TestMissingKeys(t *testing.T) {
	stored, err := open(t, file(t, "", "{aesgcm: {keys: ["+key("lost", "a")+"]}}")).For(secrets).Seal(at, plain)
	require.NoError(t, err)
	for name, r := range map[string]encryption.Resource{
		"another key":      open(t, file(t, "", "{aesgcm: {keys: ["+key("two", "b")+"]}}, {identity: {}}")).For(secrets),
		"another resource": open(t, file(t, "", "{aesgcm: {keys: ["+key("lost", "a")+"]}}")).For(schema.GroupResource{Resource: "pods"}),
		"no configuration": (*encryption.Encryption)(nil).For(secrets),
	} {
		_, _, err := r.Open(at, stored)
		require.ErrorIs(t, err, encryption.ErrNoProvider, name)
		require.ErrorContains(t, err, "aesgcm:v1:lost", name)
	}
	same := open(t, file(t, "", "{aesgcm: {keys: ["+key("lost", "b")+"]}}")).For(secrets)
	_, _, err = same.Open(at, stored)
	require.ErrorIs(t, err, encryption.ErrDamaged, "a key of the same name")
	_, _, err = same.Open(at, plain)
	require.ErrorIs(t, err, encryption.ErrNoProvider)
	require.ErrorContains(t, err, "identity")
}

func TestResources(t *testing.T) {
	path := filepath.Join(t.TempDir(), "e.yaml")
	none, keys := "providers: [{identity: {}}]", "providers: [{secretbox: {keys: ["+key("k", "a")+"]}}]"
	require.NoError(t, os.WriteFile(path, []byte(head+`
resources:
- {resources: [events, leases.coordination.k8s.io], `+none+`}
- {resources: [secrets, "*.example.com"], `+keys+`}
- {resources: ["*."], `+none+`}
- {resources: ["*.*"], `+keys+`}
`), 0o600))
	e := open(t, path)
	for name, encrypted := range map[string]bool{
		"events": false, "leases.coordination.k8s.io": false, "secrets": true, "widgets.example.com": true, "pods": false, "deployments.apps": true,
	} {
		stored, err := e.For(schema.ParseGroupResource(name)).Seal(at, plain)
		require.NoError(t, err)
		require.Equal(t, encrypted, !bytes.Equal(stored, plain), name)
	}
}

func TestConfigFaults(t *testing.T) {
	secret := base64.StdEncoding.EncodeToString(rawKey("x"))
	box := "providers: [{secretbox: {keys: [{name: a, secret: " + secret + "}]}}]"
	for name, c := range map[string]struct{ text, says string }{
		"empty":           {"", "apiVersion"},
		"not YAML":        {"a: [", "yaml"},
		"another kind":    {"apiVersion: v1\nkind: Secret\n", "EncryptionConfiguration"},
		"no resources":    {head, "resources: Required"},
		"unknown field":   {head + "resources: [{resource: [secrets]}]", `unknown field "resources[0].resource"`},
		"no names":        {head + "resources: [{" + box + "}]", "resources[0].resources"},
		"a name":          {head + "resources: [{resources: [Secrets], " + box + "}]", "lower case"},
		"a star":          {head + "resources: [{resources: ['*'], " + box + "}]", "*.*"},
		"twice":           {head + "resources: [{resources: [secrets, secrets], " + box + "}]", "no effect"},
		"covered":         {head + "resources: [{resources: ['*.apps', deployments.apps], " + box + "}]", `no effect after "*.apps"`},
		"no providers":    {head + "resources: [{resources: [secrets]}]", "resources[0].providers"},
		"an empty one":    {head + "resources: [{resources: [secrets], providers: [{}]}]", "exactly one"},
		"two in one":      {head + "resources: [{resources: [secrets], providers: [{identity: {}, secretbox: {keys: [{name: a, secret: " + secret + "}]}}]}]", "exactly one"},
		"no keys":         {head + "resources: [{resources: [secrets], providers: [{aesgcm: {keys: []}}]}]", "aesgcm.keys"},
		"key of the same": {head + "resources: [{resources: [secrets], providers: [{aesgcm: {keys: [{name: a, secret: " + secret + "}, {name: a, secret: " + secret + "}]}}]}]", "Duplicate"},
		"a colon":         {head + "resources: [{resources: [secrets], providers: [{aesgcm: {keys: [{name: 'a:b', secret: " + secret + "}]}}]}]", "colon"},
		"a short key":     {head + "resources: [{resources: [secrets], providers: [{secretbox: {keys: [{name: a, secret: c2hvcnQ=}]}}]}]", "must be 32 bytes"},
		"no base64":       {head + "resources: [{resources: [secrets], providers: [{aesgcm: {keys: [{name: a, secret: '" + secret + "!'}]}}]}]", "16, 24 or 32 bytes"},
		"old KMS":         {head + "resources: [{resources: [secrets], providers: [{kms: {name: a, endpoint: 'unix:///k'}}]}]", `supported values: "v2"`},
		"remote KMS":      {head + "resources: [{resources: [secrets], providers: [{kms: {apiVersion: v2, name: a, endpoint: 'tcp://h:1'}}]}]", "socket"},
		"KMS of the same": {head + "resources: [{resources: [secrets], providers: [{kms: {apiVersion: v2, name: a, endpoint: 'unix:///k'}}, {kms: {apiVersion: v2, name: a, endpoint: 'unix:///l'}}]}]", "another plugin"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "e.yaml")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			err := encryption.Check(path)
			require.ErrorIs(t, err, encryption.ErrConfig)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, path)
			require.NotContains(t, err.Error(), secret)
			require.NotContains(t, err.Error(), "\n")
			_, err = encryption.Open(encryption.Config{Path: path})
			require.ErrorIs(t, err, encryption.ErrConfig)
		})
	}
	require.ErrorIs(t, encryption.Check(filepath.Join(t.TempDir(), "none")), os.ErrNotExist)
}

// TestReload: a new file is in force without a restart, a faulty one is not.
func TestReload(t *testing.T) {
	path := file(t, "", "{secretbox: {keys: ["+key("one", "a")+"]}}")
	e, err := encryption.Open(encryption.Config{Path: path, Reload: true, ReloadPeriod: time.Millisecond})
	require.NoError(t, err)
	defer e.Close()
	r := e.For(secrets)
	writesWith := func(name string) bool {
		stored, err := r.Seal(at, plain)
		require.NoError(t, err)
		return bytes.HasPrefix(stored, []byte("k8s:enc:secretbox:v1:"+name+":"))
	}
	require.True(t, writesWith("one"))
	replace(t, path, "{secretbox: {keys: ["+key("two", "b")+", "+key("one", "a")+"]}}")
	require.Eventually(t, func() bool { return writesWith("two") }, time.Minute, time.Millisecond)
	require.NoError(t, os.WriteFile(path, []byte("nothing"), 0o600))
	require.Eventually(t, func() bool { return reloads(t, e, "failure") == 1 }, time.Minute, time.Millisecond)
	require.True(t, writesWith("two"))
	replace(t, path, "{secretbox: {keys: ["+key("three", "c")+", "+key("two", "b")+"]}}")
	require.Eventually(t, func() bool { return writesWith("three") }, time.Minute, time.Millisecond)
	require.EqualValues(t, 2, reloads(t, e, "success"))
}
