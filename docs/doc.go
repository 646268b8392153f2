// Package docs holds the documentation (README.md says where to begin), and the tests that keep it true: the names of files
// and functions in it, its links, the table of resources, the list of cases, and the operator that a page writes.
package docs
