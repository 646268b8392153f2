package shim

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFrames(t *testing.T) {
	var wire []byte
	wire = appendFrame(wire, Stdout, []byte("out"))
	wire = appendFrame(wire, Stderr, []byte("err"))
	wire = appendFrame(wire, Stdout, nil)
	wire = appendFrame(wire, Stdout, []byte("more"))
	var out, errOut bytes.Buffer
	require.NoError(t, CopyFrames(bytes.NewReader(wire), &out, &errOut))
	require.Equal(t, "outmore", out.String())
	require.Equal(t, "err", errOut.String())
	require.NoError(t, CopyFrames(bytes.NewReader(wire), nil, nil), "nobody has to listen")
	require.Error(t, CopyFrames(bytes.NewReader(wire[:len(wire)-1]), &out, &errOut), "cut off")
	require.Error(t, CopyFrames(bytes.NewReader([]byte{1, 255, 255, 255, 255}), nil, nil), "an absurd length")
}

func FuzzFrames(f *testing.F) {
	f.Add(appendFrame(nil, Stdout, []byte("x")))
	f.Fuzz(func(t *testing.T, b []byte) {
		var out, errOut bytes.Buffer
		_ = CopyFrames(bytes.NewReader(b), &out, &errOut)
		if out.Len()+errOut.Len() > len(b) {
			t.Fatal("more came out than went in")
		}
	})
}

func TestOOMKilled(t *testing.T) {
	for text, want := range map[string]bool{
		"oom_kill_disable 0\nunder_oom 0\noom_kill 0\n":  false,
		"oom_kill_disable 0\nunder_oom 0\noom_kill 12\n": true,
		"low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n":      true,
		"": false,
	} {
		path := filepath.Join(t.TempDir(), "events")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.Equal(t, want, oomKilled(path), text)
	}
	require.False(t, oomKilled("/no/such/file"))
}

func TestRuncError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	exit := os.ErrInvalid
	require.ErrorIs(t, RuncError(path, exit), exit, "no log: the exit status is all there is")
	require.NoError(t, os.WriteFile(path, []byte(`{"level":"warning","msg":"first"}`+"\n"+`{"level":"error","msg":"no such program"}`+"\n"), 0o600))
	err := RuncError(path, exit)
	require.ErrorIs(t, err, ErrStart)
	require.ErrorContains(t, err, "no such program")
}

func TestJSONFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "exit.json")
	var got Exit
	found, err := ReadFile(path, &got)
	require.NoError(t, err)
	require.False(t, found)
	want := Exit{Code: 3, OOMKilled: true, FinishedAt: testTime.UTC()}
	require.NoError(t, WriteFile(path, want))
	found, err = ReadFile(path, &got)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, want, got)
	require.NoError(t, os.WriteFile(path, nil, 0o600)) // after a power cut
	_, err = ReadFile(path, &got)
	require.Error(t, err)
}
