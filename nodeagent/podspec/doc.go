// Package podspec turns a pod of the API into the CRI's terms: environment variables, resources,
// security context, DNS, hosts file, sandbox and container configs.
//
// Everything here is a function of its arguments: no state, no clock, no goroutine. What must be
// read from elsewhere (ConfigMaps and Secrets, the image's user, mounts that exist on disk) comes in as
// an argument, so each rule can be tested by table.
//
// Read container.go first: it names all the parts.
package podspec
