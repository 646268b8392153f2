#!/bin/sh
# Gives every fuzz target of the repository the time $1.
set -e
grep -rl '^func Fuzz' --include='*_test.go' . | sort | while read -r file; do
	sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file" | while read -r target; do
		echo "$(dirname "$file") $target"
		CGO_ENABLED=0 "${GO:-go}" test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$(dirname "$file")"
	done
done
