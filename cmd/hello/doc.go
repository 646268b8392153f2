// Command hello is the program in the image kontiki.local/hello:latest: a web server that says who
// it is, and the small helpers that examples and tests call inside containers.
//
// Without arguments it serves. It needs nothing but itself: no shell, no libc, no files.
// `hello help` lists the helpers. Read main.go first, then serve.go.
package main
