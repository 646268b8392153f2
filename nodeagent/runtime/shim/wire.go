package shim

import (
	"encoding/json"
	"errors"
	"os"
	"time"
)

// File names in a container's bundle.
const (
	SpecFile    = "shim.json"
	SocketFile  = "shim.sock"
	StartedFile = "started.json"
	ExitFile    = "exit.json"
	StderrFile  = "shim.log" // the shim's own last words
)

// Spec tells the shim what it runs.
type Spec struct {
	ID        string   `json:"id"`
	Runc      []string `json:"runc"`    // program and global options
	LogPath   string   `json:"logPath"` // CRI log file; empty for none
	Terminal  bool     `json:"terminal"`
	Stdin     bool     `json:"stdin"`     // keep stdin open for attach
	StdinOnce bool     `json:"stdinOnce"` // close it after the first attach
	OOMFile   string   `json:"oomFile"`   // cgroup file with an "oom_kill N" line
}

// Started is what is known once the container runs.
type Started struct {
	PID       int       `json:"pid"` // of the container's process 1, as the host counts
	StartedAt time.Time `json:"startedAt"`
}

// Exit is how the container ended.
type Exit struct {
	Code       int       `json:"code"` // 128+N when signal N ended it
	OOMKilled  bool      `json:"oomKilled"`
	FinishedAt time.Time `json:"finishedAt"`
	Reason     string    `json:"reason,omitempty"`  // written by the runtime when there was no process
	Message    string    `json:"message,omitempty"` // of the same
}

// Request is the one JSON line that opens a connection to the shim. The answer is one
// Reply line; after it, attach turns the connection into a stream (see frame.go).
type Request struct {
	Op     string `json:"op"`
	Signal int    `json:"signal,omitempty"` // kill
	Width  uint16 `json:"width,omitempty"`  // resize
	Height uint16 `json:"height,omitempty"` // resize
	Stdin  bool   `json:"stdin,omitempty"`  // attach: this client writes stdin
}

// The operations of a Request.
const (
	OpWatch  = "watch"  // nothing; the connection ends when the shim does
	OpKill   = "kill"   // send Signal to the container's process 1
	OpReopen = "reopen" // open LogPath anew, after somebody renamed it
	OpResize = "resize" // set the terminal's size
	OpAttach = "attach" // stream output, and stdin if asked
)

// Reply answers a Request; an empty Error is success.
type Reply struct {
	Error string `json:"error,omitempty"`
}

// WriteFile writes v as JSON so that a reader sees the old file or the new one.
func WriteFile(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// ReadFile reads what WriteFile wrote. found is false when there is no such file.
func ReadFile(path string, v any) (found bool, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(b, v)
}
