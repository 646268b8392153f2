package compat

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// etcdctl is etcd's own command line client (go.etcd.io/etcd/etcdctl/v3, pinned in internal/tools), at one
// server, and what it printed.
type etcdctl struct {
	*testing.T
	program    string
	endpoint   string
	transcript strings.Builder
	ids        map[string]string // ids and numbers that are each server's own → their names in the transcript
}

// bothByEtcdctl runs commands against etcd and against Kontiki, and compares what was printed.
func bothByEtcdctl(t *testing.T, commands func(*etcdctl)) {
	program := buildEtcdctl(t)
	var transcripts [2]string
	for i, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			e := &etcdctl{T: t, program: program, endpoint: server.start(t), ids: map[string]string{}}
			commands(e)
			transcripts[i] = e.transcript.String()
		})
	}
	require.NotEmpty(t, transcripts[0])
	require.Equal(t, transcripts[0], transcripts[1], "expected is etcd's")
}

// buildEtcdctl returns bin/etcdctl, or else builds one.
func buildEtcdctl(t *testing.T) string {
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	program := filepath.Join(root, "bin", "etcdctl")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	program = filepath.Join(t.TempDir(), "etcdctl")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "go.etcd.io/etcd/etcdctl/v3")
	build.Dir = filepath.Join(root, "internal", "tools")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("needs etcdctl, which cannot be built here (make bin/etcdctl): %v\n%s", err, out)
	}
	return program
}

func (e *etcdctl) command(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, e.program, args...)
	cmd.Env = append(os.Environ(), "ETCDCTL_ENDPOINTS="+e.endpoint)
	cmd.Dir = e.TempDir()
	return cmd
}

// run runs a command, given as words, and notes what it printed and how it ended.
func (e *etcdctl) run(line string) { e.runWith("", strings.Fields(line)...) }

// runWith is run for a command that reads its input, or that has arguments with spaces.
func (e *etcdctl) runWith(input string, args ...string) {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.Context(), 30*time.Second)
	defer cancel()
	cmd := e.command(ctx, args)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		e.Fatalf("etcdctl %q: %v", args, err)
	}
	require.NoError(e, ctx.Err(), "etcdctl %q does not end: %s", args, out.String()+errs.String())
	e.note("$ etcdctl %s\n%s%s[%d]", e.plain(strings.Join(args, " ")), e.plain(out.String()), e.plain(complaints(errs.String())), cmd.ProcessState.ExitCode())
}

// stream runs a command that does not end by itself, until it has printed so many lines and was interrupted.
func (e *etcdctl) stream(lines int, line string, args ...string) {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.Context(), 30*time.Second)
	defer cancel()
	args = append(strings.Fields(line), args...)
	cmd := e.command(ctx, args)
	out, err := cmd.StdoutPipe()
	require.NoError(e, err)
	require.NoError(e, cmd.Start())
	scanner := bufio.NewScanner(out)
	e.note("$ etcdctl %s", e.plain(strings.Join(args, " ")))
	for range lines {
		require.True(e, scanner.Scan(), "etcdctl %q ended early: %v", args, scanner.Err())
		e.note("%s", strings.TrimSuffix(e.plain(scanner.Text()), "\n"))
	}
	require.NoError(e, cmd.Process.Signal(os.Interrupt))
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait() // some end with 0 and some with the signal, whatever the server
	require.NoError(e, ctx.Err(), "etcdctl %q does not end", args)
}

func (e *etcdctl) note(format string, args ...any) { fmt.Fprintf(&e.transcript, format+"\n", args...) }

// complaints are the lines of the error output that are not from the client's logger.
func complaints(errs string) string {
	var kept strings.Builder
	for line := range strings.Lines(errs) {
		if !strings.HasPrefix(line, `{"level"`) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

var (
	ownIDs     = regexp.MustCompile(`\b[0-9a-f]{15,16}\b|\b[0-9]{15,20}\b`)
	ownFigures = regexp.MustCompile(`took:? [=]?\s?[0-9.a-zµ]+|\d+(\.\d+)? [kM]?B\b`)
	ownURLs    = regexp.MustCompile(`(https?://)?(127\.0\.0\.1:\d+|localhost:\d+|0001)`)
	remaining  = regexp.MustCompile(`remaining\(\d+s\)`)
)

// plain is an output without what is each server's own: ids are named in the order in which they come.
func (e *etcdctl) plain(out string) string {
	out = ownURLs.ReplaceAllString(out, "URL")
	out = ownFigures.ReplaceAllString(out, "FIGURE")
	out = remaining.ReplaceAllString(out, "remaining(some)")
	return ownIDs.ReplaceAllStringFunc(out, func(id string) string {
		if e.ids[id] == "" {
			e.ids[id] = fmt.Sprint("ID", len(e.ids))
		}
		return e.ids[id]
	})
}

// id returns the id that has a name in the transcript.
func (e *etcdctl) id(name string) string {
	for id, n := range e.ids {
		if n == name {
			return id
		}
	}
	e.Fatalf("%s is not in the transcript:\n%s", name, e.transcript.String())
	return ""
}

func TestEtcdctlKeys(t *testing.T) {
	bothByEtcdctl(t, func(e *etcdctl) {
		e.run("put a 1")
		e.run("put a 2 --prev-kv")
		e.run("put b 1")
		e.run("put ab 1")
		e.runWith("a value\nwith lines", "put", "c")
		e.run("put a --ignore-value")
		e.run("put none --ignore-value")
		e.run("put a x --ignore-value")
		e.run("put a x --lease=123")
		e.runWith("", "put", "", "x")
		e.run("put")
		for _, flags := range []string{
			"a", "a b", "--prefix a", "--from-key b", "a z --limit 2", "a z --order DESCEND --sort-by MODIFY", "a z --count-only -w fields",
			"a z --keys-only", "a --rev 2", "a --rev 99", "none", "a --print-value-only", "a --hex", "--prefix --from-key a", "a b c",
			"a z --order SIDEWAYS", "a --consistency s", "a --consistency x", "a z --min-mod-rev 3 --max-mod-rev 4", "",
		} {
			e.run("get " + flags)
		}
		for _, format := range []string{"json", "fields", "simple"} {
			e.run("get a -w " + format)
			e.run("del b --prev-kv -w " + format)
			e.run("put b again -w " + format)
		}
		e.run("get a -w nonsense")
		e.run("del a z --range")
		e.run("del none")
		e.run("del --prefix a --prev-kv")
		e.run("del --from-key b")
		e.runWith("", "del", "--prefix", "")
		e.run("del")
		e.run("no-such-command")
	})
}

func TestEtcdctlTxns(t *testing.T) {
	bothByEtcdctl(t, func(e *etcdctl) {
		e.run("put k 1")
		e.runWith("value(\"k\") = \"1\"\n\nput k 2\nget k\n\nput k 3\n\n", "txn")
		e.runWith("value(\"k\") = \"1\"\nmod(\"k\") > \"1\"\n\nput k 4\n\nget k\ndel none\n\n", "txn")
		e.runWith("create(\"new\") = \"0\"\n\nput new 1\n\n\n", "txn", "-w", "json")
		e.runWith("version(\"new\") < \"2\"\n\ndel new --prev-kv\n\n\n", "txn")
		e.runWith("\nput k 5\nput k 6\n\n\n", "txn")
		e.runWith("\nput k 5\ndel k\n\n\n", "txn")
		e.runWith("\ndel --prefix k\nput kk 5\n\n\n", "txn")
		e.runWith("\nput k 5 --lease=77\n\n\n", "txn")
		e.runWith("nonsense\n\nput k 5\n\n\n", "txn")
		e.runWith("size(\"k\") = \"1\"\n\nput k 5\n\n\n", "txn")
		e.runWith("\nget k --rev=99\n\n\n", "txn")
		e.run("get k")
	})
}

func TestEtcdctlWatches(t *testing.T) {
	bothByEtcdctl(t, func(e *etcdctl) {
		for _, line := range []string{"put k 1", "put k 2", "put other 1", "del k", "put k 3", "put kk 1"} {
			e.run(line)
		}
		e.stream(11, "watch k --rev=2")
		e.stream(5, "watch k --rev=3 --prev-kv")
		e.stream(6, "watch --prefix k --rev=6")
		e.stream(3, "watch a z --rev=4")
		e.stream(1, "watch k --rev=2 -w json")
		e.stream(4, "watch k --rev=2 --", "echo", "an", "event")
		e.run("compact 6")
		e.run("watch k --rev=3")
		e.stream(3, "watch k --rev=6")
		e.run("watch")
		e.run("compact 5")
		e.run("compact 99")
		e.run("compact x")
		e.run("compact 7 --physical")
		e.run("get k --rev 4")
	})
}

func TestEtcdctlLeases(t *testing.T) {
	bothByEtcdctl(t, func(e *etcdctl) {
		e.run("lease grant 500")
		lease := e.id("ID0")
		e.run("put k v --lease=" + lease)
		e.run("lease timetolive " + lease)
		e.run("lease timetolive --keys " + lease) // of one key: etcd lists several in any order
		e.run("put kk v --lease=" + lease)
		e.run("lease list")
		e.run("lease keep-alive --once " + lease)
		e.run("get --prefix k -w fields")
		e.run("lease revoke " + lease)
		e.run("lease revoke " + lease)
		e.run("lease timetolive " + lease)
		e.run("lease keep-alive --once " + lease)
		e.run("get --prefix k")
		e.run("lease grant 9000000001")
		e.run("lease grant")
		e.run("lease grant x")
		e.run("lease revoke nonsense!")
	})
}

func TestEtcdctlRecipes(t *testing.T) {
	bothByEtcdctl(t, func(e *etcdctl) {
		e.run("lock l --ttl 30 echo held")
		e.run("lock l --ttl 30 false")
		e.stream(2, "lock l --ttl 30")
		e.run("get --prefix l --count-only -w fields")
		e.stream(2, "elect e one")
		e.run("get --prefix e")
		e.run("elect e")
		e.run("lock")
	})
}

// TestEtcdctlMaintenance: what these commands print has much in it that is each server's own, which is left out;
// a whole status is compared in TestStatus.
func TestEtcdctlMaintenance(t *testing.T) {
	bothByEtcdctl(t, func(e *etcdctl) {
		for range 4 {
			e.run("put k v")
		}
		e.run("endpoint health")
		e.run("endpoint hashkv --rev 99")
		e.run("alarm list")
		e.run("alarm disarm")
		e.run("compact 3")
		e.run("endpoint hashkv --rev 2")
		e.run("defrag")
		e.run("snapshot save file.db")
		e.run("snapshot save")
		e.run("get k")
		e.run("member list")
		e.run("member remove 123")
		e.run("member promote 123")
		e.run("member update 123 --peer-urls=http://127.0.0.1:1")
		e.run("member remove nonsense")
		e.run("member add")
		e.run("move-leader 123")
		e.run("move-leader")
		e.run("endpoint status -w nonsense")
	})
}
