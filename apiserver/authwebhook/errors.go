package authwebhook

import "errors"

var (
	// ErrCall is a webhook that cannot be reached, or that does not answer what it was asked.
	ErrCall = errors.New("webhook")
	// ErrKubeconfig is a kubeconfig file that names no webhook.
	ErrKubeconfig = errors.New("kubeconfig of the webhook")
)
