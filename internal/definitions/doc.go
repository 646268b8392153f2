// Package definitions makes CustomResourceDefinitions of the size and shape of real ones, for tests and for the bench.
//
// Real definitions are large because operators have pods in their specs: monitoring.coreos.com, argoproj.io and
// others bring the whole of PodSpec, with the descriptions of its fields. So do these: their schema is made of the Go
// type, by reflection, as controller-gen makes theirs. Sized cuts it off at a number of bytes.
package definitions
