// Package docs holds the guided tour (start at architecture.md) and the test that keeps the names
// in it true.
package docs
