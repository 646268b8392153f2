// Package memory keeps a process small, as one on a node should leave the machine to its pods: Limit has the
// garbage collector trade time for memory, and GiveBack returns to the system what a burst of work has left behind.
//
// Both are for a whole process, so they are called by main functions only.
package memory
