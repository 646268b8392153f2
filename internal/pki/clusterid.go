package pki

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// clusterIDFile holds what the cluster calls itself: the SHA-256 of its first authority. It is a file, not computed, since
// authorities are replaced and the name must stay.
const clusterIDFile = "cluster-id"

func openClusterID(dir string, cluster *authority) (string, error) {
	path := filepath.Join(dir, clusterIDFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		sum := sha256.Sum256(cluster.bundle)
		id := hex.EncodeToString(sum[:])
		return id, writeFile(path, []byte(id+"\n"))
	}
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(data))
	if sum, err := hex.DecodeString(id); err != nil || len(sum) != sha256.Size {
		return "", fmt.Errorf("%s: %w: it must hold 64 hexadecimal digits", path, ErrDamaged)
	}
	return id, nil
}
