package storage

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
)

// continueToken says where the next page starts and which revision it is read at. It has the form
// that kube-apiserver gives it (base64 of JSON), and like there any server can go on with it.
type continueToken struct {
	Version  string `json:"v"`
	Revision int64  `json:"rv"`    // newestRevision to read the newest state
	Start    string `json:"start"` // first key of the next page, relative to the list's prefix
}

const continueVersion = "meta.k8s.io/v1"

// newestRevision in a token goes on with the newest state: what a client may do, knowingly, when the
// revision of its first page is gone.
const newestRevision = -1

func (t continueToken) String() string {
	t.Version = continueVersion
	data, err := json.Marshal(t)
	if err != nil {
		panic(err) // two strings and a number
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

func parseContinue(text string) (continueToken, error) {
	var t continueToken
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return t, fmt.Errorf("%w: %w", ErrContinueToken, err)
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return t, fmt.Errorf("%w: %w", ErrContinueToken, err)
	}
	if t.Version != continueVersion {
		return t, fmt.Errorf("%w: server does not recognize this encoded version %q", ErrContinueToken, t.Version)
	}
	if t.Start == "" || t.Revision == 0 || t.Revision < newestRevision {
		return t, fmt.Errorf("%w: revision or start key is wrong", ErrContinueToken)
	}
	// The start key is appended to a prefix: it must not be a path that leads out of it.
	if rooted := "/" + t.Start; path.Clean(rooted) != rooted {
		return t, fmt.Errorf("%w: start key is not a key", ErrContinueToken)
	}
	return t, nil
}
