package install

import "path/filepath"

// A Role is what a machine is: Server or Agent.
type Role string

// The roles are the names of kontiki's commands.
const (
	Server Role = "server"
	Agent  Role = "agent"
)

// Roles are all of them. A machine may have both.
var Roles = []Role{Server, Agent}

// Layout is where things are on a machine.
type Layout struct {
	Root string // what stands before every path; empty on the machine itself
}

func (l Layout) path(parts ...string) string {
	return filepath.Join(append([]string{"/", l.Root}, parts...)...)
}

// Lib is the directory of the program.
func (l Layout) Lib() string { return l.path("usr/local/lib/kontiki") }

// Program is kontiki in it.
func (l Layout) Program() string { return filepath.Join(l.Lib(), "kontiki") }

// Link is where people's PATH finds it.
func (l Layout) Link() string { return l.path("usr/local/bin/kontiki") }

// Config is the file with a role's flags.
func (l Layout) Config(role Role) string { return l.path("etc/kontiki", string(role)+".yaml") }

// Unit is the file of a role's service.
func (l Layout) Unit(role Role) string { return l.path("etc/systemd/system", service(role)) }

func service(role Role) string { return "kontiki-" + string(role) + ".service" }
