// Package openapi describes what the API server serves, as OpenAPI v3 documents (one per group version,
// at /openapi/v3) and as one OpenAPI v2 document (at /openapi/v2). kubectl explain, kubectl's
// validation and kubectl apply read them.
//
// No document is written by hand or generated at build time: schemas come from the Go types of the
// rows by reflection (schema.go), descriptions from their SwaggerDoc methods, names from their
// OpenAPIModelName methods, list types and defaults from the server-side apply schema of client-go
// (markers.go), the few things that only comments say from comments.go, and paths from the rows
// themselves (operations.go). document.go describes rows; handler.go serves documents. A document is
// built when somebody first asks for it and kept compressed, because most clusters are never asked for
// most of them.
//
// Every definition is that of Kubernetes' own documents but for the words of descriptions (TestDocumentsOfUpstream),
// and that of a running kube-apiserver but for these and the values of enums (internal/differential).
//
// Custom resources bring a schema of their own (custom.go), and come and go. So a document is a frame with what always
// exists (frame.go) around a fragment for each of them (fragment.go), encoded and compressed once (part.go): when a
// definition changes, its fragment is made anew the next time that somebody asks, and the rest is put around it as it
// is (cache.go), in JSON as in protobuf.
package openapi
