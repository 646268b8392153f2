package nodeagent

import "errors"

var (
	// ErrConfig is an agent that cannot work with the configuration it was given.
	ErrConfig = errors.New("node agent configuration")
	// errImagePull, errImageBackOff and errNeverPull explain a container that waits for its image; their texts are the
	// waiting reasons of Kubernetes.
	errImagePull    = errors.New("ErrImagePull")
	errImageBackOff = errors.New("ImagePullBackOff")
	errNeverPull    = errors.New("ErrImageNeverPull")
	// errServicesUnknown: the services for a pod's environment have not been listed yet.
	errServicesUnknown = errors.New("services have not yet been read at least once, cannot construct envvars")
)
