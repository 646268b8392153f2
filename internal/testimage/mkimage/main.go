// Command mkimage writes the test image around a program: mkimage PROGRAM ARCHIVE.
package main

import (
	"fmt"
	"os"

	"kontiki/internal/testimage"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: mkimage PROGRAM ARCHIVE")
		os.Exit(2)
	}
	program, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = testimage.WriteHello(os.Args[2], program)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mkimage:", err)
		os.Exit(1)
	}
}
