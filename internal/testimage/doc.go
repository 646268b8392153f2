// Package testimage makes the container image that examples and tests use, from nothing but a
// static binary built from this repository: no registry, no base image.
//
// The image is reproducible: the same binary gives the same bytes, and so the same digest.
package testimage
