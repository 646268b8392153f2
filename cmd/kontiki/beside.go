package main

import (
	"os"
	"os/exec"
	"path/filepath"
)

// beside is the path of a file in the directory of this program, where `make build` puts what a
// node needs.
func beside(name string) string {
	self, err := os.Executable()
	if err != nil {
		return name
	}
	if real, err := filepath.EvalSymlinks(self); err == nil { // kubectl -> kontiki
		self = real
	}
	return filepath.Join(filepath.Dir(self), name)
}

// besideOrOnPath prefers the program built with this one over the machine's own.
func besideOrOnPath(name string) string {
	path := beside(name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	return path
}
