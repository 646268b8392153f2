package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"kontiki/internal/lingering"
	"kontiki/nodeagent/runtime/shim"
)

// streamServer serves exec, attach and port-forward over SPDY and WebSocket on loopback.
// A URL carries a random token that is good for one use within a minute, so that only who
// could ask for it through CRI can use it.
type streamServer struct {
	streaming.Server
	http    *http.Server
	closing *lingering.Listener
	done    sync.WaitGroup
}

// startStreams listens on addr and serves until close.
func startStreams(addr string, r *Runtime) (*streamServer, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("streaming server: %w", err)
	}
	cfg := streaming.DefaultConfig
	cfg.Addr = l.Addr().String()
	cfg.BaseURL = &url.URL{Scheme: "http", Host: cfg.Addr}
	srv, err := streaming.NewServer(cfg, streamRuntime{r})
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("streaming server: %w", err)
	}
	s := &streamServer{
		Server: srv, http: &http.Server{Handler: srv, ReadHeaderTimeout: time.Minute}, closing: lingering.Listen(l),
	}
	s.done.Go(func() {
		if err := s.http.Serve(s.closing); !errors.Is(err, http.ErrServerClosed) {
			r.log.Error("streaming server", "err", err)
		}
	})
	return s, nil
}

// lastWordsTime is how long clients may take over what commands said last when the runtime stops.
const lastWordsTime = time.Second

func (s *streamServer) close() {
	_ = s.http.Close()
	s.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), lastWordsTime)
	defer cancel()
	s.closing.Drain(ctx)
}

// Exec prepares an execution and answers with the URL to stream it.
func (r *Runtime) Exec(_ context.Context, req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	if _, err := r.runningContainer(req.GetContainerId()); err != nil {
		return nil, err
	}
	return r.streams.GetExec(req)
}

// Attach answers with the URL to stream a container's process 1.
func (r *Runtime) Attach(_ context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	if _, err := r.runningContainer(req.GetContainerId()); err != nil {
		return nil, err
	}
	return r.streams.GetAttach(req)
}

// PortForward answers with the URL to reach ports of a sandbox.
func (r *Runtime) PortForward(_ context.Context, req *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	s, err := r.sandbox(req.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if s.rec.Stopped {
		return nil, fmt.Errorf("%w: sandbox %s is stopped", ErrState, s.rec.ID)
	}
	return r.streams.GetPortForward(req)
}

// streamRuntime does what the streaming server is asked for (streaming.Runtime).
type streamRuntime struct{ r *Runtime }

// Exec runs cmd in a container with the given streams and returns when it has ended. A
// code other than 0 is a utilexec.ExitError, from which clients get the code.
func (s streamRuntime) Exec(ctx context.Context, id string, cmd []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	c, err := s.r.runningContainer(id)
	if err != nil {
		return err
	}
	e, err := s.r.newExecution(c, cmd, tty)
	if err != nil {
		return err
	}
	defer e.close()
	run := e.runPiped
	if tty {
		run = func(ctx context.Context, in io.Reader, out, _ io.Writer) (int, error) {
			return e.runTerminal(ctx, in, out, resize)
		}
	}
	code, err := run(ctx, in, writer(out), writer(errOut))
	if err != nil {
		return err
	}
	return exitError(code)
}

// writer keeps a nil stream a nil interface.
func writer(w io.WriteCloser) io.Writer {
	if w == nil {
		return nil
	}
	return w
}

func exitError(code int) error {
	if code == 0 {
		return nil
	}
	return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code), Code: code}
}

// runPiped runs the execution on pipes.
func (e *execution) runPiped(ctx context.Context, in io.Reader, out, errOut io.Writer) (int, error) {
	if err := e.capture(out, errOut); err != nil {
		return 0, err
	}
	if in != nil {
		w, r, err := e.pipe(true)
		if err != nil {
			return 0, err
		}
		defer w.Close()
		e.cmd.Stdin = r
		// Ends with the client's input, at the latest when the server closes the streams; the
		// process may end before and must not wait for it.
		go func() {
			_, _ = io.Copy(w, in)
			w.Close()
		}()
	}
	if err := e.start(); err != nil {
		return 0, err
	}
	return e.wait(ctx)
}

// runTerminal runs the execution on a terminal of its own.
func (e *execution) runTerminal(ctx context.Context, in io.Reader, out io.Writer, resize <-chan remotecommand.TerminalSize) (int, error) {
	l, err := e.listenConsole()
	if err != nil {
		return 0, err
	}
	defer l.Close()
	if err := e.start(); err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	var code int
	go func() {
		defer close(ended)
		code, err = e.wait(ctx)
		l.Close() // if runc failed, no terminal will come
	}()
	terminal, terr := shim.ReceiveTerminal(l)
	if terr != nil {
		<-ended
		return code, errors.Join(err, terr)
	}
	if out == nil {
		out = io.Discard
	}
	copied := startOutput(terminal, out)
	go followSize(ended, terminal, resize)
	if in != nil {
		go func() { // ends as in runPiped
			_, _ = io.Copy(terminal, in)
			_, _ = terminal.Write([]byte{4}) // end of file, as a terminal says it
		}()
	}
	<-ended
	copied.finish()
	return code, err
}

// followSize applies the client's window sizes until the execution has ended.
func followSize(ended <-chan struct{}, terminal *os.File, resize <-chan remotecommand.TerminalSize) {
	for {
		select {
		case size, ok := <-resize:
			if !ok {
				return
			}
			_ = shim.Resize(terminal, size.Width, size.Height) // too late is no error
		case <-ended:
			return
		}
	}
}

// Attach connects the streams to the container's process 1 and returns when the container
// or the client ends.
func (s streamRuntime) Attach(ctx context.Context, id string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	c, err := s.r.runningContainer(id)
	if err != nil {
		return err
	}
	if resize != nil {
		go func() { // the server closes the channel with the streams
			for size := range resize {
				_ = c.shim().Resize(ctx, size.Width, size.Height)
			}
		}()
	}
	if err := c.shim().Attach(ctx, in, writer(out), writer(errOut)); err != nil {
		return err
	}
	select {
	case <-c.exited:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.r.mu.RLock()
	defer s.r.mu.RUnlock()
	return exitError(c.exit.Code)
}

// PortForward connects stream to a port of the pod, on its loopback address.
func (s streamRuntime) PortForward(ctx context.Context, id string, port int32, stream io.ReadWriteCloser) error {
	sb, err := s.r.sandbox(id)
	if err != nil {
		return err
	}
	defer stream.Close()
	var conn net.Conn
	dial := func() (err error) {
		conn, err = dialLoopback(ctx, port)
		return err
	}
	if sb.hostNetwork() {
		err = dial()
	} else {
		err = inNetNS(sb.netNS(), dial)
	}
	if err != nil {
		return fmt.Errorf("port %d: %w", port, err)
	}
	defer conn.Close()
	return relay(ctx, conn, stream)
}

// dialLoopback prefers IPv4, as kubectl's users expect of localhost. It must stay on the
// calling thread: addresses, not names, and no second family at the same time.
func dialLoopback(ctx context.Context, port int32) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		return conn, nil
	}
	conn6, err6 := d.DialContext(ctx, "tcp6", fmt.Sprintf("[::1]:%d", port))
	if err6 != nil {
		return nil, err
	}
	return conn6, nil
}

// relay copies both ways until the pod's side ends. The client's end of input is passed on
// and the answer awaited.
func relay(ctx context.Context, conn net.Conn, stream io.ReadWriteCloser) error {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	go func() { // ends with the stream, which the caller closes
		_, _ = io.Copy(conn, stream)
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}()
	_, err := io.Copy(stream, conn)
	if ctx.Err() != nil {
		return nil
	}
	return err
}
