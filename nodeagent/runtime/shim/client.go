package shim

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Client talks to the shim of the container whose bundle is Dir.
type Client struct{ Dir string }

// requestTimeout bounds the answer to a request: the shim does nothing slow for one.
const requestTimeout = 10 * time.Second

// Dial connects to a unix socket through its directory's descriptor: the path of a socket is
// limited to 108 bytes, and data directories can be deep.
func Dial(ctx context.Context, path string) (*net.UnixConn, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// open sends req and returns the connection after a good answer.
func (c Client) open(ctx context.Context, req Request) (*net.UnixConn, *bufio.Reader, error) {
	conn, err := Dial(ctx, filepath.Join(c.Dir, SocketFile))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	r, err := roundTrip(conn, req)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, r, nil
}

func roundTrip(conn net.Conn, req Request) (*bufio.Reader, error) {
	if err := conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return nil, err
	}
	b, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(b, '\n')); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	r := bufio.NewReader(conn)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	var rep Reply
	if err := json.Unmarshal(line, &rep); err != nil {
		return nil, err
	}
	if rep.Error != "" {
		return nil, errors.New(rep.Error)
	}
	return r, conn.SetDeadline(time.Time{})
}

func (c Client) do(ctx context.Context, req Request) error {
	conn, _, err := c.open(ctx, req)
	if err != nil {
		return fmt.Errorf("shim %s: %w", req.Op, err)
	}
	return conn.Close()
}

// Kill signals the container's process 1.
func (c Client) Kill(ctx context.Context, signal int) error {
	return c.do(ctx, Request{Op: OpKill, Signal: signal})
}

// Reopen makes the shim open the log's path anew.
func (c Client) Reopen(ctx context.Context) error { return c.do(ctx, Request{Op: OpReopen}) }

// Resize sets the size of the container's terminal.
func (c Client) Resize(ctx context.Context, width, height uint16) error {
	return c.do(ctx, Request{Op: OpResize, Width: width, Height: height})
}

// Watch returns a channel that closes when the shim ends or stop is closed.
func (c Client) Watch(ctx context.Context) (ended <-chan struct{}, stop io.Closer, err error) {
	conn, r, err := c.open(ctx, Request{Op: OpWatch})
	if err != nil {
		return nil, nil, fmt.Errorf("shim watch: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer conn.Close()
		_, _ = io.Copy(io.Discard, r)
	}()
	return done, conn, nil
}

// Attach streams the container's output to stdout and stderr, and stdin (which may be nil)
// to it, until the container or ctx ends.
func (c Client) Attach(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	conn, r, err := c.open(ctx, Request{Op: OpAttach, Stdin: stdin != nil})
	if err != nil {
		return fmt.Errorf("shim attach: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if stdin != nil {
		// Ends with stdin, whose owner closes it after this call.
		go func() {
			_, _ = io.Copy(conn, stdin)
			_ = conn.CloseWrite()
		}()
	}
	if err := CopyFrames(r, stdout, stderr); err != nil && ctx.Err() == nil {
		return err
	}
	return ctx.Err()
}
