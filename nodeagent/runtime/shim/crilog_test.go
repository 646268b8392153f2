package shim

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))

func TestLogEntries(t *testing.T) {
	const stamp = "2026-01-02T02:04:05.000000006Z stdout "
	long := strings.Repeat("x", maxEntry)
	for in, want := range map[string]string{
		"":            "",
		"\n":          stamp + "F \n",
		"a\n":         stamp + "F a\n",
		"a":           stamp + "P a\n",
		"a\nb":        stamp + "F a\n" + stamp + "P b\n",
		"a\n\nb\n":    stamp + "F a\n" + stamp + "F \n" + stamp + "F b\n",
		long + "\n":   stamp + "F " + long + "\n",
		long + "y\n":  stamp + "P " + long + "\n" + stamp + "F y\n",
		"\xff\x00 \n": stamp + "F \xff\x00 \n",
	} {
		require.Equal(t, want, string(appendEntries(nil, "stdout", testTime, []byte(in))))
	}
}

// unlog is what a reader does: strip, and join pieces.
func unlog(t *testing.T, log []byte) []byte {
	var out []byte
	for line := range bytes.Lines(log) {
		fields := bytes.SplitN(bytes.TrimSuffix(line, []byte("\n")), []byte(" "), 4)
		require.Len(t, fields, 4)
		require.LessOrEqual(t, len(fields[3]), maxEntry)
		out = append(out, fields[3]...)
		if string(fields[2]) == "F" {
			out = append(out, '\n')
		}
	}
	return out
}

// FuzzLog: however output is cut into reads, a reader gets it back byte for byte.
func FuzzLog(f *testing.F) {
	f.Add([]byte("one\ntwo"), 2)
	f.Add(bytes.Repeat([]byte("z"), 3*maxEntry), 1000)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		if size <= 0 {
			size = 1
		}
		var log []byte
		for rest := text; len(rest) > 0; {
			n := min(size, len(rest))
			log = appendEntries(log, "stderr", testTime, rest[:n])
			rest = rest[n:]
		}
		if got := unlog(t, log); !bytes.Equal(text, got) {
			t.Fatalf("%q came back as %q", text, got)
		}
	})
}

func TestLogReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := openLog(path)
	require.NoError(t, err)
	l.write("stdout", testTime, []byte("one\n"))
	require.NoError(t, os.Rename(path, path+".1"))
	l.write("stdout", testTime, []byte("two\n"))
	require.NoError(t, l.reopen())
	l.write("stdout", testTime, []byte("three\n"))
	for name, want := range map[string]string{path + ".1": "one\ntwo\n", path: "three\n"} {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, want, string(unlog(t, b)))
	}
	l, err = openLog(path) // the next container with this log continues it
	require.NoError(t, err)
	l.write("stdout", testTime, []byte("four\n"))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "three\nfour\n", string(unlog(t, b)))
	none, err := openLog("")
	require.NoError(t, err)
	none.write("stdout", testTime, []byte("nowhere\n"))
}
