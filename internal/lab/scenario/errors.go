package scenario

import "errors"

var (
	// ErrFormat says that a file is no scenario.
	ErrFormat = errors.New("not a scenario")
	// ErrFailed says that a step did not do what it says.
	ErrFailed = errors.New("the scenario failed")
)
