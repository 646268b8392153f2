package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kontiki/internal/bench/apiload"
	"kontiki/internal/bench/compare"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := bench(ctx, readFlags())
	stop()
	fail(err)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are what flags say.
type options struct {
	bin      string
	api      apiload.Config // of the loads on the API server
	target   string         // kubeconfig of the API server that they are for; "" for a node of the bench's own
	node     bool
	chain    bool
	custom   bool
	labKills int              // -1: no lab
	compare  *compare.Options // nil: the store is left out
}

func readFlags() (o options) {
	bin := flag.String("bin", "bin", "directory of what `make build` made")
	part := flag.String("part", "", "store, chain, custom, node or lab: that part alone (default all, or store with -only)")
	kills := flag.Int("kills", 30, "lab: how often the leader is killed")
	each := flag.Duration("time", 3*time.Second, "node: how long each load runs")
	seconds := flag.Float64("seconds", 1, "store: how long each load runs")
	rounds := flag.Int("rounds", 3, "store: rounds, of which medians are taken")
	only := flag.String("only", "", "store: these loads alone, of "+strings.Join(compare.Names(), ","))
	clients := flag.String("clients", "1,16,128,512", "store: how many clients")
	columns := flag.String("columns", strings.Join(compare.AllColumns, ","), "store: what is compared; with -old also grpc-old and own-old")
	old := flag.String("old", "", "store: a kontikimember built before a change: the members of the -old columns")
	perConn := flag.Int("conn", compare.PerConnection, "store: clients that share a connection of client/v3")
	profile := flag.String("cpuprofile", "", "store: a directory for CPU profiles of the members, and of the client, under each load")
	dir := flag.String("dir", "", "directory for data, on the disk that is to be measured (default that for temporary files)")
	kubeconfig := flag.String("kubeconfig", "", "api: the API server to measure, instead of a node of the bench's own")
	apiOnly := flag.String("api", "", "api: these loads alone, of "+strings.Join(apiload.Names(), ","))
	flag.Parse()

	o = options{bin: *bin, api: apiload.Config{Each: *each}, target: *kubeconfig, node: *part == "node" || *part == "" && *only == "",
		chain: *part == "chain" || *part == "" && *only == "", custom: *part == "custom" || *part == "" && *only == "", labKills: -1}
	if *part == "lab" || *part == "" && *only == "" {
		o.labKills = *kills
	}
	if *apiOnly != "" {
		o.api.Only = strings.Split(*apiOnly, ",")
	}
	if *part == "node" || *part == "chain" || *part == "custom" || *part == "lab" || *kubeconfig != "" {
		return o
	}
	o.compare = &compare.Options{
		Columns: strings.Split(*columns, ","), Old: *old, Clients: numbers(*clients),
		Each: time.Duration(*seconds * float64(time.Second)), Rounds: *rounds,
		PerConn: *perConn, Profile: *profile, Dir: *dir, Out: os.Stdout,
	}
	if *only != "" {
		o.compare.Only = strings.Split(*only, ",")
	}
	return o
}

// numbers reads a list of them; a wrong one ends the program as a wrong flag does.
func numbers(list string) (ns []int) {
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			fmt.Fprintf(os.Stderr, "bench: -clients: %q is not a number of clients\n", s)
			os.Exit(2)
		}
		ns = append(ns, n)
	}
	return ns
}

func bench(ctx context.Context, o options) error {
	if o.target != "" {
		return benchAPIOf(ctx, o.target, o.api)
	}
	var parent string
	if o.compare != nil {
		parent = o.compare.Dir
	}
	dir, err := os.MkdirTemp(parent, "kontiki-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.compare != nil {
		o.compare.Dir = dir
		if err := compare.Run(ctx, *o.compare); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	if o.chain {
		if err := benchChain(ctx, dir, min(400*time.Millisecond, o.api.Each)); err != nil {
			return fmt.Errorf("chain: %w", err)
		}
	}
	if o.custom {
		if err := benchCustom(ctx, o.bin, dir, o.api); err != nil {
			return fmt.Errorf("custom resources: %w", err)
		}
	}
	if o.labKills >= 0 {
		if err := benchLab(ctx, o.bin, dir, o.labKills); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
	}
	if !o.node {
		return nil
	}
	return benchNode(ctx, o.bin, dir, o.api)
}

// report prints one figure.
func report(what, format string, args ...any) {
	fmt.Printf("%-46s %s\n", what, fmt.Sprintf(format, args...))
}
