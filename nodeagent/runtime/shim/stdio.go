package shim

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// linger is how long the streams of an ended container may be silent before they are given up.
const linger = 2 * time.Second

// consoleSocket is where runc sends the terminal's master side.
const consoleSocket = "console.sock"

// stdio is the shim's side of the container's standard streams.
type stdio struct {
	log     *criLog
	clients clients
	pumps   sync.WaitGroup
	ended   atomic.Bool // the container's process 1 has ended

	terminal *os.File          // master side, when the container has a terminal
	outputs  map[byte]*os.File // otherwise: read ends
	child    []*os.File        // the container's ends, closed once runc has them
	console  *net.UnixListener // until the terminal has come

	mu    sync.Mutex // guards stdin
	stdin *os.File   // write end or terminal; nil when there is none or it was closed
}

// openStdio makes the streams of spec and gives the container's ends to cmd.
func openStdio(spec Spec, log *criLog, cmd *exec.Cmd) (*stdio, error) {
	s := &stdio{log: log, outputs: map[byte]*os.File{}}
	if spec.Terminal {
		_ = os.Remove(consoleSocket)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: consoleSocket, Net: "unix"})
		s.console = l
		return s, err
	}
	for _, stream := range []byte{Stdout, Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		s.outputs[stream], s.child = r, append(s.child, w)
	}
	cmd.Stdout, cmd.Stderr = s.child[0], s.child[1]
	if spec.Stdin {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		cmd.Stdin, s.stdin, s.child = r, w, append(s.child, r)
	}
	return s, nil
}

// begin starts copying, after runc has started the container. Before that, what comes out
// of the pipes are runc's own complaints, which go to the pod's events instead.
func (s *stdio) begin() error {
	for _, f := range s.child {
		f.Close()
	}
	if s.console != nil {
		var err error
		if s.terminal, err = s.receiveTerminal(); err != nil {
			return err
		}
		s.stdin = s.terminal
		s.pumps.Go(func() { s.pump(Stdout, s.terminal) })
	}
	for stream, r := range s.outputs {
		s.pumps.Go(func() { s.pump(stream, r) })
	}
	return nil
}

// pump copies one stream to the log and to whoever is attached. A terminal ends with EIO.
func (s *stdio) pump(stream byte, r *os.File) {
	name := "stdout"
	if stream == Stderr {
		name = "stderr"
	}
	buf := make([]byte, maxFrame)
	for {
		if s.ended.Load() {
			_ = r.SetReadDeadline(time.Now().Add(linger))
		}
		n, err := r.Read(buf)
		if n > 0 {
			s.log.write(name, time.Now(), buf[:n])
			s.clients.write(stream, buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// receiveTerminal accepts runc's connection and takes the file descriptor out of it.
func (s *stdio) receiveTerminal() (*os.File, error) {
	defer os.Remove(consoleSocket)
	defer s.console.Close()
	if err := s.console.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return nil, err
	}
	return ReceiveTerminal(s.console)
}

// ReceiveTerminal takes the terminal that runc sends to a console socket (runc,
// docs/terminals.md: one SCM_RIGHTS message).
func ReceiveTerminal(l *net.UnixListener) (*os.File, error) {
	conn, err := l.AcceptUnix()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	data, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(data, oob)
	if err != nil {
		return nil, err
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil {
		return nil, err
	}
	if len(msgs) != 1 {
		return nil, errors.New("console socket: no file descriptor came")
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.New("console socket: not one file descriptor came")
	}
	unix.CloseOnExec(fds[0])
	if err := unix.SetNonblock(fds[0], true); err != nil { // for Go's poller: Close wakes Read
		return nil, err
	}
	return os.NewFile(uintptr(fds[0]), "terminal"), nil
}

// drain waits until all output has been copied, after the container's end. A process that
// left the container's cgroup could hold the streams open for ever; it may be silent for
// linger at most.
func (s *stdio) drain() {
	s.ended.Store(true)
	for _, r := range s.outputs {
		_ = r.SetReadDeadline(time.Now().Add(linger))
	}
	if s.terminal != nil {
		_ = s.terminal.SetReadDeadline(time.Now().Add(linger))
	}
	s.pumps.Wait()
}

// writeStdin feeds the container. Input for a container without stdin is dropped.
func (s *stdio) writeStdin(p []byte) error {
	s.mu.Lock()
	f := s.stdin
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	_, err := f.Write(p) // not under the mutex: a container that does not read blocks it
	return err
}

// closeStdin ends the container's input. A terminal is told so by its end-of-file key.
func (s *stdio) closeStdin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stdin == nil:
		return
	case s.stdin == s.terminal:
		_, _ = s.stdin.Write([]byte{4}) // ^D
	default:
		s.stdin.Close()
	}
	s.stdin = nil
}

func (s *stdio) resize(width, height uint16) error {
	if s.terminal == nil {
		return errors.New("the container has no terminal")
	}
	return Resize(s.terminal, width, height)
}

// Resize sets the size of a terminal given by its master side.
func Resize(terminal *os.File, width, height uint16) error {
	raw, err := terminal.SyscallConn() // Fd() would make it blocking
	if err != nil {
		return err
	}
	var ierr error
	err = raw.Control(func(fd uintptr) {
		ierr = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height})
	})
	return errors.Join(err, ierr)
}
