package authconfig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
)

// The types of authorizers.
const (
	TypeNode    = "Node"
	TypeRBAC    = "RBAC"
	TypeWebhook = "Webhook"
)

// Authentication reads an AuthenticationConfiguration. ownIssuer is the issuer of service accounts' tokens, which cannot be in it.
func Authentication(path, ownIssuer string) (*apiserver.AuthenticationConfiguration, error) {
	config := &apiserver.AuthenticationConfiguration{}
	if err := read(path, config); err != nil {
		return nil, err
	}
	faults := validation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), config, []string{ownIssuer})
	return config, inFile(path, faults.ToAggregate())
}

// Authorization reads an AuthorizationConfiguration.
func Authorization(path string) (*apiserver.AuthorizationConfiguration, error) {
	config := &apiserver.AuthorizationConfiguration{}
	if err := read(path, config); err != nil {
		return nil, err
	}
	faults := validation.ValidateAuthorizationConfiguration(authorizationcel.NewDefaultCompiler(), nil, config,
		sets.New(TypeNode, TypeRBAC, TypeWebhook), sets.New(TypeWebhook))
	return config, inFile(path, faults.ToAggregate())
}

// AnonymousPaths are the paths that a configuration opens to those who do not say who they are: "*" means all, nil that it leaves that
// to the server.
func AnonymousPaths(config *apiserver.AuthenticationConfiguration) []string {
	if config == nil || config.Anonymous == nil {
		return nil
	}
	paths := []string{}
	if !config.Anonymous.Enabled {
		return paths
	}
	for _, condition := range config.Anonymous.Conditions {
		paths = append(paths, condition.Path)
	}
	if len(paths) == 0 {
		paths = append(paths, "*")
	}
	return slices.Clip(paths)
}

func read(path string, into runtime.Object) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(data)) == 0 { // somebody is just writing it; it would mean the defaults
		return inFile(path, errEmpty)
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	return inFile(path, runtime.DecodeInto(codecs.UniversalDecoder(), data, into))
}

var errEmpty = errors.New("the file is empty")

func inFile(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", path, err)
}
