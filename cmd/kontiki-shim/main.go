// Command kontiki-shim looks after one container, so that the node agent can be restarted.
// It is started by the agent, never by hand; see kontiki/nodeagent/runtime/shim.
package main

import (
	"fmt"
	"os"

	"kontiki/nodeagent/runtime/shim"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "kontiki-shim:", err)
		code = 1
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	switch {
	case len(args) == 1 && args[0] == "run":
		return 0, shim.Run()
	case len(args) > 2 && args[0] == "exec":
		return shim.Exec(args[1], args[2:])
	case len(args) == 1 && args[0] == "pause":
		shim.Pause()
		return 0, nil
	}
	return 0, fmt.Errorf("usage: kontiki-shim run | exec PIDFILE RUNC ARGS… | pause")
}
