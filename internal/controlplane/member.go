package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/uuid"
)

// idPattern is the form of the names that memberID chooses.
var idPattern = regexp.MustCompile(`^[0-9a-f]{8}$`)

const memberIDFile = "member-id"

// memberID is this store's name in the raft cluster: chosen once, kept beside the store, the same
// whatever the machine is called later. Under any other name the store would wait for ever for the
// members that its log knows.
func memberID(dir string) (string, error) {
	path := filepath.Join(dir, memberIDFile)
	data, err := os.ReadFile(path)
	if err == nil {
		if id := strings.TrimSpace(string(data)); idPattern.MatchString(id) {
			return id, nil
		}
		return "", fmt.Errorf("store: %s is damaged: it must name this raft member by eight hexadecimal digits", path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("store: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "mvcc.db")); err == nil {
		return "", fmt.Errorf("store: %s is missing beside the store: it must name this raft member", path)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	id := uuid.NewString()[:8]
	return id, writeFile(path, id+"\n")
}

// writeFile puts text at path whole or not at all, and on disk when it returns.
func writeFile(path, text string) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("store: write %s: %w", path, err)
	}
	return os.Rename(path+".new", path)
}
