package apiclient

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Config is a copy of base for a client of built-in kinds: it speaks protobuf, which costs both ends a fraction of what
// JSON does, and calls itself userAgent, which audit ids and managedFields show. It has no rate limit of its own: its
// caller bounds what it does at a time. The server's warnings, that Endpoints are deprecated for example, are for people:
// what our own parts use is built with the server.
func Config(base *rest.Config, userAgent string) *rest.Config {
	config := rest.CopyConfig(base)
	config.UserAgent = userAgent
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	return config
}
