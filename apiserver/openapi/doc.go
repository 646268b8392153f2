// Package openapi describes what the API server serves, as OpenAPI v3 documents (one per group version,
// at /openapi/v3) and as one OpenAPI v2 document (at /openapi/v2). kubectl explain, kubectl's
// validation and kubectl apply read them.
//
// No document is written by hand or generated at build time: schemas come from the Go types of the
// rows by reflection (schema.go), descriptions from their SwaggerDoc methods, names from their
// OpenAPIModelName methods, list types and defaults from the server-side apply schema of client-go
// (markers.go), the few things that only comments say from comments.go, and paths from the rows
// themselves (operations.go). document.go puts a document together; handler.go serves it. A document is
// built when somebody first asks for it and kept compressed, because most clusters are never asked for
// most of them.
//
// Every definition is that of Kubernetes' own documents but for the words of descriptions (TestDocumentsOfUpstream),
// and that of a running kube-apiserver but for these and the values of enums (internal/differential).
//
// Custom resources bring a schema of their own (custom.go). A document is made anew when a row that it describes has
// changed, so that a new definition costs the documents of its own group versions.
package openapi
