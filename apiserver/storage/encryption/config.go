package encryption

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// fileKind is what the file must be.
var fileKind = schema.GroupVersionKind{Group: "apiserver.config.k8s.io", Version: "v1", Kind: "EncryptionConfiguration"}

// Check reads a configuration's file and says what is wrong with it. It calls no plugin.
func Check(path string) error {
	_, _, err := read(path)
	return err
}

// read reads and checks a file. data is what was in it.
func read(path string) (file *apiserverv1.EncryptionConfiguration, data []byte, err error) {
	if data, err = os.ReadFile(path); err != nil {
		return nil, nil, err
	}
	if file, err = parse(data); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, data, nil
}

func parse(data []byte) (*apiserverv1.EncryptionConfiguration, error) {
	plain, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrConfig, strings.Join(strings.Fields(err.Error()), " "))
	}
	file := &apiserverv1.EncryptionConfiguration{}
	unknown, err := kjson.UnmarshalStrict(plain, file)
	if err = errors.Join(append(unknown, err)...); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrConfig, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if file.GroupVersionKind() != fileKind {
		return nil, fmt.Errorf("%w: it must begin with apiVersion: %s and kind: %s", ErrConfig, fileKind.GroupVersion(), fileKind.Kind)
	}
	if faults := validate(file); len(faults) > 0 {
		return nil, fmt.Errorf("%w: %v", ErrConfig, faults.ToAggregate())
	}
	return file, nil
}

func validate(file *apiserverv1.EncryptionConfiguration) (faults field.ErrorList) {
	path := field.NewPath("resources")
	if len(file.Resources) == 0 {
		faults = append(faults, field.Required(path, "which resources are encrypted"))
	}
	var before []string // in force before the one at hand
	plugins := map[string]string{}
	for i, r := range file.Resources {
		at := path.Index(i)
		if len(r.Resources) == 0 {
			faults = append(faults, field.Required(at.Child("resources"), "such as secrets"))
		}
		for j, name := range r.Resources {
			faults = append(faults, validateResource(name, before, at.Child("resources").Index(j))...)
			before = append(before, name)
		}
		if len(r.Providers) == 0 {
			faults = append(faults, field.Required(at.Child("providers"), "what they are encrypted with"))
		}
		for j, p := range r.Providers {
			faults = append(faults, validateProvider(p, plugins, at.Child("providers").Index(j))...)
		}
	}
	return faults
}

// validateResource: a name is RESOURCE, RESOURCE.GROUP, *. for the core group, *.GROUP, or *.* for everything. One that an
// earlier one covers would have no effect.
func validateResource(name string, before []string, path *field.Path) field.ErrorList {
	if name == "" || name == "*" || strings.ToLower(name) != name || strings.Contains(name, "/") || strings.Contains(name[1:], "*") && name != "*.*" {
		return field.ErrorList{field.Invalid(path, name, "must be a resource or resource.group in lower case, *. (the core group), *.group, or *.*")}
	}
	for _, earlier := range before {
		if earlier == name || covers(earlier, schema.ParseGroupResource(name)) {
			return field.ErrorList{field.Invalid(path, name, fmt.Sprintf("has no effect after %q", earlier))}
		}
	}
	return nil
}

// covers says whether a name of the file means the resource.
func covers(name string, resource schema.GroupResource) bool {
	if name == "*.*" {
		return true
	}
	if group, ok := strings.CutPrefix(name, "*."); ok {
		return group == resource.Group
	}
	return schema.ParseGroupResource(name) == resource
}

func validateProvider(p apiserverv1.ProviderConfiguration, plugins map[string]string, path *field.Path) (faults field.ErrorList) {
	given := 0
	for _, keys := range []struct {
		name  string
		given bool
		keys  []apiserverv1.Key
		sizes []int
	}{
		{"aesgcm", p.AESGCM != nil, keysOf(p.AESGCM), []int{16, 24, 32}},
		{"aescbc", p.AESCBC != nil, keysOf(p.AESCBC), []int{16, 24, 32}},
		{"secretbox", p.Secretbox != nil, boxKeysOf(p.Secretbox), []int{32}},
	} {
		if keys.given {
			given++
			faults = append(faults, validateKeys(keys.keys, keys.sizes, path.Child(keys.name, "keys"))...)
		}
	}
	if p.Identity != nil {
		given++
	}
	if p.KMS != nil {
		given++
		faults = append(faults, validateKMS(p.KMS, plugins, path.Child("kms"))...)
	}
	if given != 1 {
		faults = append(faults, field.Invalid(path, field.OmitValueType{}, "must have exactly one of aesgcm, aescbc, secretbox, kms and identity"))
	}
	return faults
}

func keysOf(c *apiserverv1.AESConfiguration) []apiserverv1.Key {
	if c == nil {
		return nil
	}
	return c.Keys
}

func boxKeysOf(c *apiserverv1.SecretboxConfiguration) []apiserverv1.Key {
	if c == nil {
		return nil
	}
	return c.Keys
}

func validateKeys(keys []apiserverv1.Key, sizes []int, path *field.Path) (faults field.ErrorList) {
	if len(keys) == 0 {
		faults = append(faults, field.Required(path, "at least one"))
	}
	seen := map[string]bool{}
	for i, key := range keys {
		at := path.Index(i)
		if key.Name == "" || strings.Contains(key.Name, ":") {
			faults = append(faults, field.Invalid(at.Child("name"), key.Name, "must be set, and have no colon"))
		}
		if seen[key.Name] {
			faults = append(faults, field.Duplicate(at.Child("name"), key.Name))
		}
		seen[key.Name] = true
		secret, err := base64.StdEncoding.DecodeString(key.Secret)
		if err != nil || !slices.Contains(sizes, len(secret)) {
			faults = append(faults, field.Invalid(at.Child("secret"), field.OmitValueType{}, fmt.Sprintf("must be %s bytes in base64", oneOf(sizes))))
		}
	}
	return faults
}

func oneOf(sizes []int) string {
	if len(sizes) == 1 {
		return fmt.Sprint(sizes[0])
	}
	return "16, 24 or 32"
}

// validateKMS: plugins has the endpoints by the names of those before. A plugin may be named again, for other resources.
func validateKMS(c *apiserverv1.KMSConfiguration, plugins map[string]string, path *field.Path) (faults field.ErrorList) {
	if c.APIVersion != "v2" {
		faults = append(faults, field.NotSupported(path.Child("apiVersion"), c.APIVersion, []string{"v2"}))
	}
	if c.Name == "" || strings.Contains(c.Name, ":") {
		faults = append(faults, field.Invalid(path.Child("name"), c.Name, "must be set, and have no colon"))
	}
	if !strings.HasPrefix(c.Endpoint, "unix:///") {
		faults = append(faults, field.Invalid(path.Child("endpoint"), c.Endpoint, "must be the socket of the plugin, such as unix:///run/kms.sock"))
	}
	if other, ok := plugins[c.Name]; ok && other != c.Endpoint {
		faults = append(faults, field.Invalid(path.Child("name"), c.Name, "is the name of another plugin: values are told apart by it"))
	}
	plugins[c.Name] = c.Endpoint
	if c.CacheSize != nil {
		faults = append(faults, field.Forbidden(path.Child("cachesize"), "is for version 1 of the API"))
	}
	if c.Timeout != nil && c.Timeout.Duration <= 0 {
		faults = append(faults, field.Invalid(path.Child("timeout"), c.Timeout.Duration.String(), "must be more than 0"))
	}
	return faults
}

const defaultKMSTimeout = 3 * time.Second

func kmsTimeout(c *apiserverv1.KMSConfiguration) time.Duration {
	if c.Timeout == nil {
		return defaultKMSTimeout
	}
	return c.Timeout.Duration
}
