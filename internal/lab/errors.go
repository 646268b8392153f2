package lab

import "errors"

var (
	// ErrNoLab says that no lab is up.
	ErrNoLab = errors.New("no lab is up: start one with kontiki lab up")
	// ErrUp says that one is up already.
	ErrUp = errors.New("a lab is up already: kontiki lab down ends it")
	// ErrElsewhere says that the lab was made in another network namespace, where alone its commands can work.
	ErrElsewhere = errors.New("this lab is in another network namespace: use another --dir, or nsenter")
	// ErrNoHost says that the lab has no machine of a name.
	ErrNoHost = errors.New("the lab has no such machine")
	// ErrNoLeader says that no server of the lab leads at present.
	ErrNoLeader = errors.New("no server leads at present")
	// ErrUnsupported says that this machine's kernel cannot do what is asked.
	ErrUnsupported = errors.New("this kernel cannot do that")
)
