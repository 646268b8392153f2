package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"

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
// and sysctls (paths below /proc/sys) written. On error nothing stays pinned.
func (p pinnedNamespaces) create(hostname string, sysctls map[string]string) error {
	kinds := p.kinds()
	if len(kinds) == 0 {
		return nil
	}
	if err := os.MkdirAll(p.Dir, 0o711); err != nil {
		return err
	}
	err := onThrowawayThread(func() error { return p.onThread(kinds, hostname, sysctls) })
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
	for path, value := range sysctls {
		if err := os.WriteFile(filepath.Join("/proc/sys", path), []byte(value), 0o644); err != nil {
			return fmt.Errorf("%w: sysctl %s: %w", ErrInvalid, path, err)
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
func inNetNS(path string, f func() error) error {
	return onThrowawayThread(func() error {
		ns, err := os.Open(path)
		if err != nil {
			return err
		}
		defer ns.Close()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter %s: %w", path, err)
		}
		return f()
	})
}

// onThrowawayThread calls f on a thread that ends afterwards, so that f may change the
// thread's namespaces: no other goroutine ever runs in them. The main thread cannot end
// (it would keep the namespaces, and /proc/self would show them), so it is only held while
// another one does the work.
func onThrowawayThread(f func() error) error {
	done := make(chan error)
	go func() {
		goruntime.LockOSThread() // never unlocked, except on the main thread
		if unix.Gettid() != unix.Getpid() {
			done <- f()
			return
		}
		err := onThrowawayThread(f)
		goruntime.UnlockOSThread()
		done <- err
	}()
	return <-done
}
