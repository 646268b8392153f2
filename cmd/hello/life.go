package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// pause waits; SIGTERM ends it as it would end a program that does not look.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return terminated
	}
}

func sleep(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return wrongUsage("sleep")
	}
	d, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	return pause(ctx, d)
}

func exit(_ context.Context, args []string) error {
	if len(args) != 1 {
		return wrongUsage("exit")
	}
	code, err := strconv.Atoi(args[0])
	if err != nil || code < 0 || code > 255 {
		return wrongUsage("exit")
	}
	if code == 0 {
		return nil
	}
	return exitCode(code)
}

// trap is a program that does not end at once when asked to.
func trap(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return wrongUsage("trap")
	}
	delay := time.Duration(0)
	if args[0] != "ignore" {
		var err error
		if delay, err = time.ParseDuration(args[0]); err != nil {
			return err
		}
	}
	fmt.Println("trap: set")
	<-ctx.Done()
	fmt.Println("trap: caught SIGTERM")
	if args[0] == "ignore" {
		select {} // until SIGKILL; the signal handler keeps this from being a deadlock
	}
	time.Sleep(delay)
	return nil
}

func alloc(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return wrongUsage("alloc")
	}
	mebibytes, err := strconv.Atoi(args[0])
	if err != nil || mebibytes < 0 {
		return wrongUsage("alloc")
	}
	held := make([]byte, mebibytes<<20)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1 // a page counts once it is written
	}
	fmt.Printf("alloc: holding %d MiB\n", mebibytes)
	<-ctx.Done()
	return terminated
}
