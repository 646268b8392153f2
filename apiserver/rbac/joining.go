package rbac

import (
	_ "embed"
	"fmt"
	"sync"

	"sigs.k8s.io/yaml"
)

//go:embed joining.yaml
var joiningYAML []byte

var readJoining = sync.OnceValue(func() (file defaultsFile) {
	if err := yaml.UnmarshalStrict(joiningYAML, &file); err != nil {
		panic(fmt.Sprintf("rbac/joining.yaml: %v", err)) // it is part of the program, and a test reads it
	}
	return file
})

// Joining returns what is Kontiki's own beside Defaults: the roles and bindings by which machines join a cluster. They
// are kept up like the others.
func Joining() Objects { return readJoining().objects() }
