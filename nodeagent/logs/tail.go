package logs

import (
	"bytes"
	"io"
	"os"
)

// tailBlock is how much seekTail reads at a time, backwards.
const tailBlock = 64 << 10

// seekTail drops and positions the files of the chain so that what remains are the last n lines. Pieces
// of one line count as one line.
func seekTail(chain []*os.File, n int64) ([]*os.File, error) {
	for i := len(chain) - 1; i >= 0; i-- {
		offset, found, err := tailOffset(chain[i], &n)
		if err != nil {
			return chain, err
		}
		if _, err := chain[i].Seek(offset, io.SeekStart); err != nil {
			return chain, err
		}
		if found {
			closeAll(chain[:i])
			return chain[i:], nil
		}
	}
	return chain, nil
}

// tailOffset walks f's lines from the end and counts *n down for each that ends a line of the
// container. It stops behind the one that is too many.
func tailOffset(f *os.File, n *int64) (offset int64, found bool, err error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, false, err
	}
	var rest []byte // the bytes from start on that do not begin with a whole line yet
	torn := true    // nothing ended by a newline has been seen
	for start := size; start > 0; {
		block := make([]byte, min(start, tailBlock))
		start -= int64(len(block))
		if _, err := f.ReadAt(block, start); err != nil {
			return 0, false, err
		}
		rest = append(block, rest...)
		for {
			// rest = … \n line \n? Everything behind the last newline before the end is one line.
			i := bytes.LastIndexByte(bytes.TrimSuffix(rest, []byte("\n")), '\n')
			if i < 0 {
				break
			}
			if torn && !bytes.HasSuffix(rest, []byte("\n")) {
				torn, rest = false, rest[:i+1]
				continue
			}
			torn = false
			if e, err := Parse(bytes.TrimSuffix(rest[i+1:], []byte("\n"))); err == nil && !e.Partial {
				if *n == 0 {
					return start + int64(len(rest)), true, nil
				}
				*n--
			}
			rest = rest[:i+1]
		}
	}
	if e, err := Parse(bytes.TrimSuffix(rest, []byte("\n"))); err == nil && !e.Partial {
		if *n == 0 {
			return int64(len(rest)), true, nil
		}
		*n--
	}
	return 0, false, nil
}
