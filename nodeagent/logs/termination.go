package logs

import (
	"bytes"
	"errors"
	"io/fs"
)

// Tail returns the last lines of the log at path, at most maxLines and maxBytes, as text: the termination message of a
// container that asks for FallbackToLogsOnError.
func Tail(path string, maxLines, maxBytes int64) (string, error) {
	chain, err := openChain(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	chain, err = seekTail(chain, maxLines)
	defer func() { closeAll(chain) }()
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	p := &printer{w: &out, lineStart: true}
	for _, f := range chain {
		if err := copyLines(f, p); err != nil {
			return "", err
		}
	}
	text := out.Bytes()
	if over := int64(len(text)) - maxBytes; over > 0 {
		text = text[over:]
	}
	return string(text), nil
}
