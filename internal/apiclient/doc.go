// Package apiclient is what Kontiki's own API clients (controllers, scheduler, node agent) have in common
// beyond client-go: how they speak (config.go) and how they read informers (informer.go).
package apiclient
