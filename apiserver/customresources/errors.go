package customresources

import "errors"

var (
	// ErrUnusableSchema: a schema that validation has let into the store cannot be compiled. It is a fault of the server.
	ErrUnusableSchema = errors.New("the server could not properly serve the CR schema")
	// ErrUnknownVersion: an object is stored in a version that its definition does not have any more.
	ErrUnknownVersion = errors.New("no such version in the definition")
	// ErrConversion: a conversion webhook did not answer, or not as it must.
	ErrConversion = errors.New("conversion webhook")

	errTerminating = errors.New("create not allowed while custom resource definition is terminating")
)
