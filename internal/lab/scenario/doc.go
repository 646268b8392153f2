// Package scenario reads and runs the lab's scenario files (docs/labs/*.yaml): they say what is going to happen, break something
// in a lab, check what must hold all the same, and explain what was seen. docs/lab.md has the format for those who write one.
//
// A scenario fails with its first step that does not do what it says; nothing is softened by a retry, except in an expect, whose
// point it is to wait. Whatever happens, background commands are ended and the commands of finally are run.
//
// Read format.go first, then run.go.
package scenario
