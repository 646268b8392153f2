package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

func echo(_ context.Context, args []string) error {
	_, err := fmt.Println(strings.Join(args, " "))
	return err
}

func printEnv(context.Context, []string) error {
	for _, v := range slices.Sorted(slices.Values(os.Environ())) {
		fmt.Println(v)
	}
	return nil
}

func printID(context.Context, []string) error {
	groups, err := os.Getgroups()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	fmt.Printf("uid=%d gid=%d groups=%v host=%s\n", os.Getuid(), os.Getgid(), groups, host)
	return nil
}

// printLines prints numbered lines, so that a reader notices one that is missing or twice there.
func printLines(ctx context.Context, args []string) error {
	numbers := []int{0, 0, 0, 0} // count, size, rate, exit code
	if len(args) < 1 || len(args) > len(numbers) {
		return wrongUsage("lines")
	}
	for i, arg := range args {
		n, err := strconv.Atoi(arg)
		if err != nil || n < 0 {
			return wrongUsage("lines")
		}
		numbers[i] = n
	}
	count, size, rate, code := numbers[0], numbers[1], numbers[2], numbers[3]
	out := bufio.NewWriter(os.Stdout)
	for i := range count {
		line := fmt.Sprintf("line %d ", i)
		line += strings.Repeat("x", max(0, size-len(line)-1))
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
		if rate == 0 {
			continue
		}
		out.Flush()
		if err := pause(ctx, time.Second/time.Duration(rate)); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil || code == 0 {
		return err
	}
	return exitCode(code)
}

func partial(ctx context.Context, args []string) error {
	if len(args) < 1 {
		return wrongUsage("partial")
	}
	fmt.Print(args[0])
	if len(args) == 1 {
		return nil
	}
	return sleep(ctx, args[1:])
}

func hashInput(context.Context, []string) error {
	h := sha256.New()
	if _, err := io.Copy(h, os.Stdin); err != nil {
		return err
	}
	fmt.Printf("%x\n", h.Sum(nil))
	return nil
}

func upper(context.Context, []string) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(strings.ToUpper(lines.Text()))
	}
	return lines.Err()
}
