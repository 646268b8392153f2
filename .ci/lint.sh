#!/bin/sh
# gofmt, go vet and staticcheck; prints what is wrong and exits 1 if anything is.
export CGO_ENABLED=0
failed=0
unformatted=$(git ls-files '*.go' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
	echo "not formatted (run gofmt -w):"; echo "$unformatted"; failed=1
fi
"${GO:-go}" vet ./... || failed=1
bin/staticcheck ./... || failed=1
[ $failed = 0 ] && echo "lint: clean"
exit $failed
