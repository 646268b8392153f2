// Command mktree writes a container image whose one layer is a directory tree:
//
//	mktree -name REFERENCE [-name …] [-entrypoint "WORD …"] [-cmd "WORD …"] DIRECTORY ARCHIVE
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"kontiki/internal/testimage"
)

func main() {
	tree := testimage.Tree{}
	flag.Func("name", "a reference of the image", func(s string) error { tree.Names = append(tree.Names, s); return nil })
	flag.Func("entrypoint", "what it runs", func(s string) error { tree.Entrypoint = strings.Fields(s); return nil })
	flag.Func("cmd", "with these arguments, unless others are given", func(s string) error { tree.Cmd = strings.Fields(s); return nil })
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: mktree -name REFERENCE [-entrypoint WORDS] [-cmd WORDS] DIRECTORY ARCHIVE")
		os.Exit(2)
	}
	tree.Root = flag.Arg(0)
	if err := testimage.WriteTree(flag.Arg(1), tree); err != nil {
		fmt.Fprintln(os.Stderr, "mktree:", err)
		os.Exit(1)
	}
}
