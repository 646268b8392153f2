// Package extensiontest is an API server for tests, of the kind that package aggregation puts itself in front of: it believes
// the front proxy's certificate and nobody else's, has one kind of objects in a group of its own, a stream of events, an
// upgrade and OpenAPI documents, and can be told to misbehave.
//
// Read server.go first.
package extensiontest
