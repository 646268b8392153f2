// Package registry is the table of resources that the API server is made of. A Resource is one row:
// names, Go types, where the objects live in the store, what is special about writing them, and how
// kubectl prints them. Handlers, discovery, OpenAPI and storage are generic over the rows, so that a
// new kind is a new row.
//
// Read resource.go first (the contract of a row), then table.go (the table), builtin.go (all built-in
// rows), then one API group: apps.go is the shortest complete one. core.go lists the rows of the core
// group; what is special about a kind is in a file of its name (service.go, node.go). What pods and
// pod templates share is in podspec_defaults.go and podspec_validation.go.
//
// Validation is declared (package validations, run by declared.go) and, for the rest, written by hand in
// the files called *_validation.go. Kinds that are not stored are rows with Answers (answers.go).
//
// To add a kind (docs/adding-a-resource.md walks through one): write a func that starts with newRow and sets what is special, return it from the
// xxxRows func of its group (a new group also goes into Builtin and newScheme, both in builtin.go),
// and give it columns. Discovery, OpenAPI, storage and tables follow by themselves, and
// TestRowsAreComplete, TestRandomObjects and the openapi tests check the new row as they check all. What Kubernetes
// enforces and the row does not is said in its comment as "Not yet".
//
// Invariants:
//   - Defaults are deterministic and idempotent: they run on every body and on every object read.
//   - Validation names fields and causes as Kubernetes does, and returns all faults at once.
//   - Functions of a row never keep or change an object that they were given to read, and are safe to
//     call from many goroutines.
//
// The package knows no store and no HTTP.
package registry
