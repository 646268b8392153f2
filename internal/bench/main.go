package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	bin := flag.String("bin", "bin", "directory of what `make build` made")
	each := flag.Duration("time", 3*time.Second, "how long each load runs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := bench(ctx, *bin, *each); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, bin string, each time.Duration) error {
	dir, err := os.MkdirTemp("", "kontiki-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := benchStore(ctx, dir, each); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return benchNode(ctx, bin, dir, each)
}

// report prints one figure.
func report(what, format string, args ...any) {
	fmt.Printf("%-46s %s\n", what, fmt.Sprintf(format, args...))
}
