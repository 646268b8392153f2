# Reads `go test -v` of several packages, whose outputs follow each other whole.

/^@@exit /          { code = $2; next }
/\[no test files\]$/ { next }
                    { lines[++n] = $0 }
/^(ok  |FAIL)\t/    { package($1 == "FAIL") }

function package(failed,   i, word, test, line) {
	for (i = 1; i <= n; i++) {
		if (split(lines[i], word) && word[1] == "===") test = word[3]
		line = lines[i]
		if (sub(/^ +[A-Za-z0-9_]+\.go:[0-9]+: /, "", line)) said[test] = line
		if (lines[i] ~ /^ *--- SKIP: /) skip(i)
		if (failed || i == n) print lines[i]
	}
	fflush()
	n = 0
}

# The reason of a skip is the last line that the test logged.
function skip(i,   word, why) {
	split(lines[i], word, /SKIP: | \(/)
	why = (word[2] in said) ? said[word[2]] : "no reason given"
	if (!(why in skipped)) order[++reasons] = why
	skipped[why] = skipped[why] "\n    " word[2]
}

END {
	for (i = 1; i <= n; i++) print lines[i]  # what came after the last package: a build error
	if (reasons) print "\nskipped:"
	for (i = 1; i <= reasons; i++) print "  " order[i] ":" skipped[order[i]]
	exit code
}
