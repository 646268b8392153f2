package runtime

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// accounts are the parts of an image's /etc/passwd and /etc/group that matter.
type accounts struct{ passwd, group [][]string } // fields of each line

// readAccounts reads both files below rootfs. os.Root keeps symbolic links of the image
// inside; a file that is missing or too odd to open counts as empty.
func readAccounts(rootfs string) (accounts, error) {
	root, err := os.OpenRoot(rootfs)
	if err != nil {
		return accounts{}, err
	}
	defer root.Close()
	return accounts{passwd: colonFile(root, "etc/passwd"), group: colonFile(root, "etc/group")}, nil
}

// maxAccountFile bounds what is read of an image's account files.
const maxAccountFile = 4 << 20

func colonFile(root *os.Root, name string) [][]string {
	if st, err := root.Stat(name); err != nil || !st.Mode().IsRegular() || st.Size() > maxAccountFile {
		return nil
	}
	b, err := root.ReadFile(name)
	if err != nil {
		return nil
	}
	var out [][]string
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		out = append(out, strings.Split(strings.TrimSpace(lines.Text()), ":"))
	}
	return out
}

// user finds a passwd line by name or number: name:x:uid:gid:….
func (a accounts) user(key string) (name string, uid, gid uint32, found bool) {
	for _, f := range a.passwd {
		if len(f) < 4 || f[0] != key && f[2] != key {
			continue
		}
		u, uerr := parseID(f[2])
		g, gerr := parseID(f[3])
		if uerr == nil && gerr == nil {
			return f[0], u, g, true
		}
	}
	return "", 0, 0, false
}

// groupID finds a group line by name or number: name:x:gid:members.
func (a accounts) groupID(key string) (uint32, bool) {
	for _, f := range a.group {
		if len(f) >= 3 && f[0] == key {
			if gid, err := parseID(f[2]); err == nil {
				return gid, true
			}
		}
	}
	gid, err := parseID(key)
	return gid, err == nil
}

// memberships are the groups that list the user by name.
func (a accounts) memberships(name string) []uint32 {
	var out []uint32
	for _, f := range a.group {
		if name == "" || len(f) < 4 || !slices.Contains(strings.Split(f[3], ","), name) {
			continue
		}
		if gid, err := parseID(f[2]); err == nil {
			out = append(out, gid)
		}
	}
	return out
}

func parseID(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	return uint32(n), err
}

// resolveUser decides who a container's process is: the security context's user, else the
// image's ("name", "uid", either with ":group"), else root. Numbers need not be in the
// image's files; names must.
func resolveUser(rootfs, imageUser string, sc *runtimeapi.LinuxContainerSecurityContext) (specs.User, error) {
	acc, err := readAccounts(rootfs)
	if err != nil {
		return specs.User{}, err
	}
	wanted, group, _ := strings.Cut(imageUser, ":")
	switch {
	case sc.GetRunAsUser() != nil:
		wanted, group = strconv.FormatInt(sc.GetRunAsUser().GetValue(), 10), ""
	case sc.GetRunAsUsername() != "":
		wanted, group = sc.GetRunAsUsername(), ""
	case sc.GetRunAsGroup() != nil && wanted == "":
		return specs.User{}, fmt.Errorf("%w: run_as_group without a user", ErrInvalid)
	}
	if wanted == "" {
		wanted = "0"
	}
	name, uid, gid, found := acc.user(wanted)
	if !found {
		if uid, err = parseID(wanted); err != nil {
			return specs.User{}, fmt.Errorf("%w: no user %q in the image", ErrInvalid, wanted)
		}
	}
	if group != "" {
		if gid, found = acc.groupID(group); !found {
			return specs.User{}, fmt.Errorf("%w: no group %q in the image", ErrInvalid, group)
		}
	}
	if g := sc.GetRunAsGroup(); g != nil {
		if gid, err = parseID(strconv.FormatInt(g.GetValue(), 10)); err != nil {
			return specs.User{}, fmt.Errorf("%w: group %d", ErrInvalid, g.GetValue())
		}
	}
	extra, err := supplementalGroups(acc.memberships(name), gid, sc)
	return specs.User{UID: uid, GID: gid, AdditionalGids: extra}, err
}

// supplementalGroups are the primary group, the image's memberships unless the policy is
// Strict, and the pod's own list (KEP-3619).
func supplementalGroups(member []uint32, primary uint32, sc *runtimeapi.LinuxContainerSecurityContext) ([]uint32, error) {
	out := []uint32{primary}
	if sc.GetSupplementalGroupsPolicy() == runtimeapi.SupplementalGroupsPolicy_Merge {
		out = append(out, member...)
	}
	var errs []error
	for _, g := range sc.GetSupplementalGroups() {
		gid, err := parseID(strconv.FormatInt(g, 10))
		errs = append(errs, err)
		out = append(out, gid)
	}
	slices.Sort(out)
	return slices.Compact(out), errors.Join(errs...)
}
