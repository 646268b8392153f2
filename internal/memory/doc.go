// Package memory keeps a process small, as one on a node should leave the machine to its pods (Save). While there is
// work the garbage collector may use some memory so as not to run all the time; when there is none, what the work
// has left behind goes back to the system.
//
//	heap │      ╱│  ╱│  ╱│
//	     │     ╱ │ ╱ │ ╱ │         growth: half of what is in use, a leeway at least
//	     │    ╱  │╱  │╱  │__
//	     │___╱               │____ given back
//	     └──────────────────────── time
//
// It is about a whole process, so only a main function starts it.
package memory
