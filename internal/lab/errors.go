package lab

import "errors"

var (
	// ErrNoLab says that no lab is up.
	ErrNoLab = errors.New("no lab is up: start one with kontiki lab up")
	// ErrUp says that one is up already.
	ErrUp = errors.New("a lab is up already: kontiki lab down ends it")
	// ErrOther says that another one is up, in another directory or network namespace: its machines have the same names.
	ErrOther = errors.New("another lab is up on this machine: end it with kontiki lab down --dir DIR, in its network namespace")
	// ErrElsewhere says that the lab was made in another network namespace, where alone its commands can work.
	ErrElsewhere = errors.New("this lab is in another network namespace: use another --dir, or nsenter")
	// ErrLost says that the lab's network is gone, and with it all that ran there.
	ErrLost = errors.New("nothing is left of the lab but its files, as after a restart of this machine: kontiki lab down ends it")
	// ErrNoHost says that the lab has no machine of a name.
	ErrNoHost = errors.New("the lab has no such machine")
	// ErrNoLeader says that no server of the lab leads at present.
	ErrNoLeader = errors.New("no server leads at present")
	// ErrUnsupported says that this machine's kernel cannot do what is asked.
	ErrUnsupported = errors.New("this kernel cannot do that")
)
