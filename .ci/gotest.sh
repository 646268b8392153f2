#!/bin/sh
# Runs `go test` on its arguments (vet is part of lint). Prints one line for each package, everything that a failing
# package said, and at the end which tests were skipped and why. Exits as `go test` does.
{ CGO_ENABLED=0 "${GO:-go}" test -vet=off -timeout 20m -v "$@" 2>&1; echo "@@exit $?"; } | awk -f .ci/gotest.awk
