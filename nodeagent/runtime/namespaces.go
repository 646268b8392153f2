package runtime

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// pinnedNamespaces are the namespaces of one sandbox, each bound to a file in Dir: a bind
// mount keeps a namespace alive without a process in it (namespaces(7)).
type pinnedNamespaces struct {
	Dir           string
	Net, IPC, UTS bool // which of them the sandbox has of its own
}

func (p pinnedNamespaces) path(kind string) string { return filepath.Join(p.Dir, kind) }

// kinds lists the namespaces to make, with their flags for unshare(2).
func (p pinnedNamespaces) kinds() map[string]int {
	kinds := map[string]int{}
	if p.Net {
		kinds["net"] = unix.CLONE_NEWNET
	}
	if p.IPC {
		kinds["ipc"] = unix.CLONE_NEWIPC
	}
	if p.UTS {
		kinds["uts"] = unix.CLONE_NEWUTS
	}
	return kinds
}

// create makes and pins the namespaces, with the loopback interface up, the hostname set
// and sysctls written. On error nothing stays pinned.
func (p pinnedNamespaces) create(hostname string, sysctls map[string]string) error {
	kinds := p.kinds()
	if len(kinds) == 0 {
		return nil
	}
	if err := os.MkdirAll(p.Dir, 0o711); err != nil {
		return err
	}
	done := make(chan error)
	go func() {
		// Never unlocked: the thread dies with the goroutine, so that no other goroutine
		// ever runs in these namespaces.
		goruntime.LockOSThread()
		done <- p.onThread(kinds, hostname, sysctls)
	}()
	err := <-done
	if err != nil {
		err = errors.Join(err, p.remove())
	}
	return err
}

func (p pinnedNamespaces) onThread(kinds map[string]int, hostname string, sysctls map[string]string) error {
	flags := 0
	for _, f := range kinds {
		flags |= f
	}
	if err := unix.Unshare(flags); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if p.UTS {
		if err := unix.Sethostname([]byte(hostname)); err != nil {
			return fmt.Errorf("sethostname: %w", err)
		}
	}
	if p.Net {
		if err := loopbackUp(); err != nil {
			return fmt.Errorf("loopback: %w", err)
		}
	}
	for key, value := range sysctls {
		path := filepath.Join("/proc/sys", strings.ReplaceAll(key, ".", "/"))
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			return fmt.Errorf("%w: sysctl %s: %w", ErrInvalid, key, err)
		}
	}
	for kind := range kinds {
		if err := pin("/proc/thread-self/ns/"+kind, p.path(kind)); err != nil {
			return err
		}
	}
	return nil
}

func loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// pin binds the namespace file source to path.
func pin(source, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o444)
	if err != nil {
		return err
	}
	f.Close()
	if err := unix.Mount(source, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("pin %s: %w", path, err)
	}
	return nil
}

// remove unpins everything in Dir. The namespaces end with their last process.
func (p pinnedNamespaces) remove() error {
	entries, err := os.ReadDir(p.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, unmountRemove(p.path(e.Name())))
	}
	return errors.Join(errs...)
}

// alive says whether the pins are still there: a reboot takes them.
func (p pinnedNamespaces) alive() bool {
	for kind := range p.kinds() {
		var st unix.Statfs_t
		if unix.Statfs(p.path(kind), &st) != nil || st.Type != unix.NSFS_MAGIC {
			return false
		}
	}
	return true
}

// unmountRemove detaches whatever is mounted at path, if anything, and removes it.
func unmountRemove(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	return os.RemoveAll(path)
}

// inNetNS calls f on a thread inside the network namespace pinned at path, for example to
// connect a socket, which then stays there.
func inNetNS(path string, f func() (net.Conn, error)) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		goruntime.LockOSThread() // never unlocked, as above
		ns, err := os.Open(path)
		if err == nil {
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
			ns.Close()
		}
		if err != nil {
			done <- result{err: fmt.Errorf("enter %s: %w", path, err)}
			return
		}
		conn, err := f()
		done <- result{conn, err}
	}()
	res := <-done
	return res.conn, res.err
}
