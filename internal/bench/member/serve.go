package member

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"time"

	"kontiki/internal/bench/load"
)

// Command is the first argument of the program when it is to be a member; a Spec follows.
const Command = "member"

// Spec is what a member is started with.
type Spec struct {
	System string   // "etcd" or "kontiki", for programs that could be either (-old)
	Dir    string   // its own, new
	Index  int      // which of the members it is
	Client []string // host:port of each member's API
	Peer   []string // and of its raft transport
}

// Name is that of a member.
func Name(i int) string { return fmt.Sprintf("bench%d", i) }

// Request asks a member's process for something, one line of JSON on its standard input; an answer
// is a line on its standard output.
type Request struct {
	Do       string        // "load", "watch", "firstWrite": by its own front; "profile", "endProfile"
	Workload string        `json:",omitempty"`
	Run      string        `json:",omitempty"` // different for each load
	Clients  int           `json:",omitempty"`
	Each     time.Duration `json:",omitempty"`
	File     string        `json:",omitempty"` // of a CPU profile
}

// Answer is the answer to a Request.
type Answer struct {
	Error    string
	Measured load.Measured
}

// Main is the main function of a program that is a member: run starts one and calls what it is given with the
// way in which goroutines of the process can load it, nil if there is none. The program ends when standard
// input does, as it does when the bench ends, however that happens.
func Main(run func(Spec, func(own Front) error) error) {
	if err := start(run); err != nil {
		fmt.Fprintln(os.Stderr, "member:", err)
		os.Exit(1)
	}
}

func start(run func(Spec, func(own Front) error) error) error {
	if len(os.Args) != 3 || os.Args[1] != Command {
		return fmt.Errorf("this is a member of a cluster that bench starts: %s %s SPEC", os.Args[0], Command)
	}
	var s Spec
	if err := json.Unmarshal([]byte(os.Args[2]), &s); err != nil {
		return err
	}
	out := os.Stdout
	os.Stdout = os.Stderr // what libraries print is no answer
	return run(s, func(own Front) error { return serve(own, os.Stdin, out) })
}

// serve answers requests until there are no more.
func serve(own Front, in io.Reader, out io.Writer) error {
	lines, answers := bufio.NewScanner(in), json.NewEncoder(out)
	for lines.Scan() {
		var r Request
		var a Answer
		err := json.Unmarshal(lines.Bytes(), &r)
		if err == nil {
			a.Measured, err = do(own, r)
		}
		if err != nil {
			a.Error = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
	return lines.Err()
}

var profile *os.File // the CPU profile that is being written

func do(own Front, r Request) (load.Measured, error) {
	ctx := context.Background()
	switch r.Do {
	case "profile":
		var err error
		if profile, err = os.Create(r.File); err != nil {
			return load.Measured{}, err
		}
		return load.Measured{}, pprof.StartCPUProfile(profile)
	case "endProfile":
		pprof.StopCPUProfile()
		return load.Measured{}, profile.Close()
	}
	if own == nil {
		return load.Measured{}, errors.New("no own front here")
	}
	switch r.Do {
	case "load":
		return Load(ctx, Fronts{own}, r)
	case "watch":
		return FanOut(ctx, Fronts{own}, r.Each)
	case "firstWrite":
		return load.Measured{}, FirstWrite(ctx, Fronts{own})
	}
	return load.Measured{}, fmt.Errorf("unknown request %+v", r)
}
