package compare

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

// MemberCommand is the first argument of the program when it is to be a member; a memberSpec follows.
const MemberCommand = "member"

// memberSpec is what a member is started with.
type memberSpec struct {
	System string   // "etcd" or "kontiki"
	Dir    string   // its own, new
	Index  int      // which of the members it is
	Client []string // host:port of each member's API
	Peer   []string // and of its raft transport
}

func memberName(i int) string { return fmt.Sprintf("bench%d", i) }

// request asks a member's process for something, one line of JSON on its standard input; an answer
// is a line on its standard output.
type request struct {
	Do       string        // "load", "watch", "firstWrite": by its own front; "profile", "endProfile"
	Workload string        `json:",omitempty"`
	Run      string        `json:",omitempty"` // different for each load
	Clients  int           `json:",omitempty"`
	Each     time.Duration `json:",omitempty"`
	File     string        `json:",omitempty"` // of a CPU profile
}

type answer struct {
	Error    string
	Measured load.Measured
}

// Member is the program as a member. It ends when standard input does, as it does when the bench ends,
// however that happens.
func Member(spec string) error {
	var s memberSpec
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return fmt.Errorf("member: %w", err)
	}
	out := os.Stdout
	os.Stdout = os.Stderr // what libraries print is no answer
	run := runEtcd
	if s.System == "kontiki" {
		run = runKontiki
	}
	return run(s, func(own front) error { return serve(own, os.Stdin, out) })
}

// serve answers requests until there are no more.
func serve(own front, in io.Reader, out io.Writer) error {
	lines, answers := bufio.NewScanner(in), json.NewEncoder(out)
	for lines.Scan() {
		var r request
		var a answer
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

func do(own front, r request) (load.Measured, error) {
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
		op, ok := findWorkload(r.Workload)
		if !ok {
			break
		}
		return load.Run(ctx, r.Clients, r.Each, op(fronts{own}, r.Run, r.Clients))
	case "watch":
		return fanOut(ctx, fronts{own}, r.Each)
	case "firstWrite":
		return load.Measured{}, firstWrite(ctx, fronts{own})
	}
	return load.Measured{}, fmt.Errorf("unknown request %+v", r)
}
