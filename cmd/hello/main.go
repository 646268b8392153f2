package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// helper is one subcommand. ctx ends with SIGTERM or SIGINT.
type helper struct {
	usage string
	run   func(ctx context.Context, args []string) error
}

// exitCode is an error that ends the program with this code and no message.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// terminated is what a shell reports for a program that SIGTERM ended.
const terminated = exitCode(128 + syscall.SIGTERM)

// helpers returns the table; it is a function because the helpers themselves print lines of it.
func helpers() map[string]helper {
	return map[string]helper{
		"serve":    {"serve [ADDRESS]               answer HTTP with pod, node and greeting (default :8080)", serve},
		"echo":     {"echo WORD…                    print the words", echo},
		"env":      {"env                           print the environment, sorted", printEnv},
		"id":       {"id                            print uid, gid, groups and host name", printID},
		"lines":    {"lines COUNT [SIZE [RATE [CODE]]]  print COUNT lines of SIZE bytes, RATE a second (0: at once), end with CODE", printLines},
		"partial":  {"partial TEXT [DURATION]       print TEXT without a newline, then sleep", partial},
		"sha256":   {"sha256                        hash standard input", hashInput},
		"upper":    {"upper                         copy standard input to output in capitals, line by line", upper},
		"sleep":    {"sleep DURATION                sleep; SIGTERM ends it with 143", sleep},
		"exit":     {"exit CODE                     end with CODE", exit},
		"trap":     {"trap ignore | trap DURATION   on SIGTERM: go on, or end with 0 after DURATION", trap},
		"cat":      {"cat FILE…                     print files", cat},
		"ls":       {"ls DIR…                       list directories: mode, size, name", list},
		"write":    {"write FILE TEXT               write a file", write},
		"get":      {"get URL                       HTTP GET; fails unless 2xx", get},
		"resolve":  {"resolve NAME                  print the addresses of NAME, sorted", resolve},
		"tcp-echo": {"tcp-echo ADDRESS              send back what TCP clients send", tcpEcho},
		"udp-echo": {"udp-echo ADDRESS              send back what UDP clients send", udpEcho},
		"send":     {"send tcp|udp ADDRESS TEXT     send TEXT and print the first reply", send},
		"admit":    {"admit ADDRESS CERTIFICATE KEY  be an admission webhook that denies what has the label deny", admit},
		"reach":    {"reach [--within 10s] TARGET…   try tcp://ADDRESS and udp://ADDRESS that echo, http://… and dns://NAME, all at once", reach},
		"alloc":    {"alloc MEBIBYTES               hold that much memory until SIGTERM", alloc},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err := dispatch(ctx, os.Args[1:])
	var code exitCode
	switch {
	case errors.As(err, &code):
		os.Exit(int(code))
	case err != nil:
		fmt.Fprintln(os.Stderr, "hello:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		args = []string{"serve"}
	}
	table := helpers()
	h, ok := table[args[0]]
	if !ok {
		for _, name := range slices.Sorted(maps.Keys(table)) {
			fmt.Fprintln(os.Stderr, " ", table[name].usage)
		}
		return exitCode(2)
	}
	return h.run(ctx, args[1:])
}

// wrongUsage is for a helper called with the wrong number of arguments.
func wrongUsage(name string) error {
	return fmt.Errorf("usage: %s", helpers()[name].usage)
}
