package openapi

import (
	"runtime"

	"golang.org/x/sync/errgroup"
)

// abreast does something for each of n, as many at a time as there are processors: the first document of some hundred
// definitions is seconds of work, and somebody waits for it. The error is that of one that failed.
func abreast(n int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}
