// Package hostcheck looks at the machine before anything starts: whether it can run containers, and
// under which address other machines reach it. It changes nothing: whatever it tries, it undoes.
package hostcheck
