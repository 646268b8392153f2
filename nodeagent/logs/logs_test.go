package logs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// line is entry number i of a test log, written i seconds after epoch.
func line(i int, tag, text string) string {
	return fmt.Sprintf("%s stdout %s %s\n", epoch.Add(time.Duration(i)*time.Second).Format(time.RFC3339Nano), tag, text)
}

func read(t *testing.T, path string, o Options) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Read(context.Background(), path, o, &out, nil))
	return out.String()
}

func ptr[T any](v T) *T { return &v }

func TestReadOptions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	require.NoError(t, os.WriteFile(path+".20260102-150405.000000000", []byte(line(1, "F", "one")+line(2, "P", "tw")+line(3, "F", "o")), 0o600))
	require.NoError(t, os.WriteFile(path, []byte(line(4, "F", "three")+"garbage\n"+strings.Replace(line(5, "F:x", "four"), "stdout", "stderr", 1)+line(6, "P", "end")+"2026-01-02T"), 0o600))
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"all":          {Options{}, "one\ntwo\nthree\nfour\nend"},
		"tail 0":       {Options{TailLines: ptr(int64(0))}, "end"},
		"tail 1":       {Options{TailLines: ptr(int64(1))}, "four\nend"},
		"tail crosses": {Options{TailLines: ptr(int64(3))}, "two\nthree\nfour\nend"},
		"tail joins":   {Options{TailLines: ptr(int64(4))}, "one\ntwo\nthree\nfour\nend"},
		"tail many":    {Options{TailLines: ptr(int64(99))}, "one\ntwo\nthree\nfour\nend"},
		"since":        {Options{Since: epoch.Add(4 * time.Second)}, "three\nfour\nend"},
		"limit":        {Options{LimitBytes: ptr(int64(6))}, "one\ntw"},
		"stderr":       {Options{Stream: "stderr"}, "four\n"},
		"timestamps": {Options{Timestamps: true, TailLines: ptr(int64(3))},
			"2026-01-02T03:04:07Z two\n2026-01-02T03:04:09Z three\n2026-01-02T03:04:10Z four\n2026-01-02T03:04:11Z end"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, read(t, path, c.o)) })
	}
}

func TestTailOfLongLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	long := strings.Repeat("x", 3*tailBlock)
	require.NoError(t, os.WriteFile(path, []byte(line(1, "F", "a")+line(2, "F", long)+line(3, "F", "b")), 0o600))
	require.Equal(t, long+"\nb\n", read(t, path, Options{TailLines: ptr(int64(2))}))
}

// TestFollowAcrossRotation has a writer, a rotation every 20 lines that keeps 3 files, and a follower
// (ND-06): every number arrives once and in order. The follower keeps up because the writer waits for it.
func TestFollowAcrossRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	f, err := os.Create(path)
	require.NoError(t, err)
	var alive atomic.Bool
	alive.Store(true)
	caughtUp := make(chan struct{}, 1)
	var out bytes.Buffer
	var wg sync.WaitGroup
	var readErr error
	wg.Go(func() {
		readErr = Read(context.Background(), path, Options{Follow: true, Alive: alive.Load}, &out, func() {
			select {
			case caughtUp <- struct{}{}:
			default:
			}
		})
	})
	var want strings.Builder
	for i := range 100 {
		if i%20 == 0 && i > 0 {
			require.NoError(t, Rotate(path, 1, 3, epoch.Add(time.Duration(i)*time.Second), func() error {
				// The runtime still writes to the renamed file before it opens the new one.
				fmt.Fprint(f, line(i, "F", fmt.Sprintf("late %d", i)))
				fmt.Fprintf(&want, "late %d\n", i)
				f.Close()
				f, err = os.Create(path)
				return err
			}))
			<-caughtUp
		}
		fmt.Fprint(f, line(i, "F", fmt.Sprint(i)))
		fmt.Fprintf(&want, "%d\n", i)
	}
	require.NoError(t, f.Close())
	alive.Store(false)
	wg.Wait()
	require.NoError(t, readErr)
	require.Equal(t, want.String(), out.String())
	files, err := Rotated(path)
	require.NoError(t, err)
	require.Len(t, files, 2)
}

func TestRotateGivesNameBackWhenReopenFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	require.NoError(t, os.WriteFile(path, []byte("0123456789"), 0o600))
	boom := fmt.Errorf("boom")
	require.ErrorIs(t, Rotate(path, 5, 5, epoch, func() error { return boom }), boom)
	require.FileExists(t, path)
	require.NoError(t, Rotate(path, 10, 5, epoch, func() error { return boom }), "not larger than the limit")
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "2026-01-02T03:04:05Z stdout F x", "2026-01-02T03:04:05.1Z stderr P:a ", "2026-01-02T03:04:05Z stdout F"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Parse(data)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		tag := "F"
		if e.Partial {
			tag = "P"
		}
		again, err := Parse(fmt.Appendf(nil, "%s %s %s %s", e.Stamp, e.Stream, tag, e.Text))
		require.NoError(t, err)
		require.Equal(t, string(e.Text), string(again.Text))
		e.Text, again.Text = nil, nil
		require.Equal(t, e, again)
	})
}

// FuzzTail compares the backward scan with the obvious forward one.
func FuzzTail(f *testing.F) {
	f.Add(uint8(2), "F one\nP tw\nF o\nF three\nP end")
	f.Add(uint8(0), "\n\nF a\nx")
	f.Fuzz(func(t *testing.T, n uint8, text string) {
		var content strings.Builder
		for _, l := range strings.SplitAfter(text, "\n") {
			content.WriteString("2026-01-02T03:04:05Z stdout " + l)
		}
		path := filepath.Join(t.TempDir(), "0.log")
		require.NoError(t, os.WriteFile(path, []byte(content.String()), 0o600))
		all := strings.SplitAfter(read(t, path, Options{}), "\n")
		full := len(all) - 1
		want := strings.Join(all[max(full-int(n), 0):], "")
		require.Equal(t, want, read(t, path, Options{TailLines: ptr(int64(n))}))
	})
}
