// Command kontiki is the whole cluster in one program.
//
// Each command has a file of its own that reads flags and wires packages together; what a component
// does is in its package. Read main.go first, then server.go, then process.go, which starts and
// stops the parts of one node in order.
package main
