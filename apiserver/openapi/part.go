package openapi

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
)

// A part is a piece of a document, compressed once. Pieces need not be compressed again to be put together: each ends
// on a byte boundary with an empty block that is not the last one (RFC 1951, 3.2.4), and refers to nothing before it,
// so that pieces after one another are one deflate stream, and with a header and a sum around them one gzip member
// (RFC 1952). The sum of the whole follows from those of the parts (crc.go).
type part struct {
	deflated []byte
	size     int // in the clear
	crc      uint32
}

// lastBlock ends a deflate stream: an empty stored block that says it is the last.
var lastBlock = []byte{0x01, 0x00, 0x00, 0xff, 0xff}

// gzipHeader is that of a member without a name and a time.
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

// deflaters are large, and soon ready for the next part.
var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.DefaultCompression)
	if err != nil {
		panic(err) // the level is known to exist
	}
	return w
}}

func newPart(plain []byte) part {
	var out bytes.Buffer
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	w.Reset(&out)
	_, _ = w.Write(plain) // a bytes.Buffer takes everything
	_ = w.Flush()
	return part{deflated: bytes.Clone(out.Bytes()), size: len(plain), crc: crc32.ChecksumIEEE(plain)}
}

// parts are a document, or what one row adds to it.
type parts []part

// gzip writes the whole as one gzip member.
func (ps parts) gzip(w io.Writer) error {
	if _, err := w.Write(gzipHeader); err != nil {
		return err
	}
	var sum uint32
	size := 0
	for _, p := range ps {
		if _, err := w.Write(p.deflated); err != nil {
			return err
		}
		sum, size = combineCRC(sum, p.crc, p.size), size+p.size
	}
	end := binary.LittleEndian.AppendUint32(bytes.Clone(lastBlock), sum)
	_, err := w.Write(binary.LittleEndian.AppendUint32(end, uint32(size)))
	return err
}

// plain reads the whole in the clear.
func (ps parts) plain() io.Reader {
	readers := make([]io.Reader, 0, len(ps)+1)
	for _, p := range ps {
		readers = append(readers, bytes.NewReader(p.deflated))
	}
	return flate.NewReader(io.MultiReader(append(readers, bytes.NewReader(lastBlock))...))
}

// bytes are the whole in the clear.
func (ps parts) bytes() []byte {
	plain, err := io.ReadAll(ps.plain())
	if err != nil {
		panic(fmt.Sprintf("a document that was compressed here does not read: %v", err))
	}
	return plain
}
