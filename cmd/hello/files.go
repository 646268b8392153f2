package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

func cat(_ context.Context, args []string) error {
	for _, path := range args {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(os.Stdout, f)
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func list(_ context.Context, args []string) error {
	for _, dir := range args {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				return err
			}
			fmt.Printf("%s %8d %s\n", info.Mode(), info.Size(), e.Name())
		}
	}
	return nil
}

func write(_ context.Context, args []string) error {
	if len(args) != 2 {
		return wrongUsage("write")
	}
	return os.WriteFile(args[0], []byte(args[1]), 0o644)
}
