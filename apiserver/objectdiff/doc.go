// Package objectdiff says what differs between two versions of an API object, field by field. Read diff.go.
package objectdiff
