package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kontiki/internal/bench/member"
)

// Options say what is compared.
type Options struct {
	Columns []string      // of etcd, grpc, own, grpc-old, own-old; the last two are another program's members
	Old     string        // that program; the others are beside this one: etcdmember and kontikimember
	Only    []string      // names of loads; empty is all of them
	Clients []int         // how many at a time
	Each    time.Duration // how long a load runs
	Rounds  int
	PerConn int    // clients that share a connection of client/v3
	Profile string // a directory for CPU profiles of the members under each load; empty is none
	Dir     string // for data, which is removed
	Out     io.Writer
}

// AllColumns are the whole comparison.
var AllColumns = []string{"etcd", "grpc", "own"}

// PerConnection is by default how many clients share a connection.
const PerConnection = 16

// Names of what is measured beside the workloads.
const (
	nameWatch    = "watch"
	nameFailOver = "failover"
	nameMemory   = "memory"
)

// Names are the loads that Options.Only may have.
func Names() []string {
	return append(member.Workloads(), nameWatch, nameFailOver, nameMemory)
}

// Run compares and prints.
func Run(ctx context.Context, o Options) error {
	columns, err := o.columns()
	if err != nil {
		return err
	}
	for _, name := range o.Only {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("no load %q; there are %v", name, Names())
		}
	}
	b := &bench{Options: o, columns: columns, results: results{}}
	for round := range o.Rounds {
		for _, c := range columns {
			began := time.Now()
			if err := b.column(ctx, c); err != nil {
				return fmt.Errorf("%s, round %d: %w", c.Name, round+1, err)
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s measured in %s\n", round+1, o.Rounds, c.Name, time.Since(began).Round(time.Second))
		}
	}
	b.print()
	return nil
}

func (o Options) columns() (list []Column, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	beside := func(name string) string { return filepath.Join(filepath.Dir(self), name) }
	known := map[string]Column{
		"etcd":     {system: "etcd", binary: beside("etcdmember")},
		"grpc":     {system: "kontiki", binary: beside("kontikimember")},
		"own":      {system: "kontiki", binary: beside("kontikimember"), own: true},
		"grpc-old": {system: "kontiki", binary: o.Old},
		"own-old":  {system: "kontiki", binary: o.Old, own: true},
	}
	for _, name := range o.Columns {
		c, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("no column %q", name)
		}
		if c.binary == "" {
			return nil, errors.New("say which program the old one is")
		}
		if _, err := os.Stat(c.binary); err != nil {
			return nil, fmt.Errorf("%w: go build -o DIR/ ./internal/bench/... makes bench and its members", err)
		}
		c.Name = name
		list = append(list, c)
	}
	return list, nil
}

func (o Options) wants(name string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, name) }
