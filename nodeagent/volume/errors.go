package volume

import "errors"

var (
	// ErrUnsupported is a volume source that this node cannot make.
	ErrUnsupported = errors.New("volume source is not supported by this node")
	// ErrHostPath is a hostPath that is not what its type demands.
	ErrHostPath = errors.New("hostPath type check failed")
	// ErrSubPath is a subPath that is malformed or would leave its volume.
	ErrSubPath = errors.New("subPath")
	// ErrKey is a ConfigMap or Secret key that a volume asks for and that does not exist.
	ErrKey = errors.New("references non-existent key")
	// ErrNoTrustBundle is a ClusterTrustBundle projection that matches none and is not optional.
	ErrNoTrustBundle = errors.New("signerName and labelSelector match no ClusterTrustBundle")
	// ErrFileName is a file name that would leave the volume.
	ErrFileName = errors.New("file path may not be absolute, contain '..' or be empty")
)
