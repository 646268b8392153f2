package grpcserver

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// head is what the headers of a call say.
type head struct {
	method  *method
	ctx     context.Context // of the connection, with the metadata
	timeout time.Duration   // 0 for none
	err     error           // a status: the call cannot be served
}

// heads decodes blocks of headers. HPACK has a table in each direction, and every field that is new goes into it; the
// next time its index is enough, in one byte if that is below 127. So a block of such bytes alone
// leaves the table as it is, and means the same until another block changes the table:
//
//	:method POST  :scheme http  :path …  :authority …  content-type  user-agent  te  hasleader
//	     83            86          c1          c0           bf           be      bd     bc
//
// Only the reader's goroutine uses it.
type heads struct {
	server  *Server
	ctx     context.Context
	decoder *hpack.Decoder
	known   map[string]*head // by their blocks, as long as these mean the same

	path, encoding, contentType, timeout string // of the block that is being decoded
	metadata                             metadata.MD
	bytes                                int
}

const (
	tableBytes   = 4096     // of HPACK's table; the value that a client may count on
	maxHeadBytes = 64 << 10 // of headers, decoded; a connection that sends more is closed
	maxKnown     = 64       // blocks; others are decoded each time they come
)

// What ends a connection: from then on the table is unknown.
const (
	errHeadTooLarge = http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	errHead         = http2.ConnectionError(http2.ErrCodeCompression)
)

func newHeads(s *Server, ctx context.Context) *heads {
	h := &heads{server: s, ctx: ctx, known: map[string]*head{}}
	h.decoder = hpack.NewDecoder(tableBytes, h.field)
	h.decoder.SetMaxStringLength(maxHeadBytes)
	return h
}

// decode returns what a block of headers says.
func (h *heads) decode(block []byte) (*head, error) {
	if known := h.known[string(block)]; known != nil {
		return known, nil
	}
	h.path, h.encoding, h.contentType, h.timeout, h.metadata, h.bytes = "", "", "", "", metadata.MD{}, 0
	if _, err := h.decoder.Write(block); err != nil {
		return nil, errHead
	}
	if err := h.decoder.Close(); err != nil {
		return nil, errHead
	}
	if h.bytes > maxHeadBytes {
		return nil, errHeadTooLarge
	}
	d := h.made()
	switch {
	case !onlyIndexes(block):
		clear(h.known)
	case len(h.known) < maxKnown:
		h.known[string(block)] = d
	}
	return d, nil
}

func onlyIndexes(block []byte) bool {
	for _, b := range block {
		if b&0x80 == 0 || b == 0xff {
			return false
		}
	}
	return true
}

// field takes one header.
func (h *heads) field(f hpack.HeaderField) {
	if h.bytes += int(f.Size()); h.bytes > maxHeadBytes {
		return
	}
	switch f.Name {
	case ":path":
		h.path = f.Value
	case "content-type":
		h.contentType = f.Value
	case "grpc-timeout":
		h.timeout = f.Value
	case "grpc-encoding":
		h.encoding = f.Value
	}
	if !strings.HasPrefix(f.Name, ":") {
		h.metadata.Append(f.Name, f.Value)
	}
}

// made puts together what the fields said.
func (h *heads) made() *head {
	d := &head{ctx: metadata.NewIncomingContext(h.ctx, h.metadata)}
	if prepare := h.server.config.Prepare; prepare != nil {
		d.ctx = prepare(d.ctx)
	}
	if d.method, d.err = h.server.find(h.path); d.err != nil {
		return d
	}
	switch {
	case h.encoding != "" && h.encoding != "identity":
		d.err = status.Errorf(codes.Unimplemented, "grpc: Decompressor is not installed for grpc-encoding %q", h.encoding)
	case !strings.HasPrefix(h.contentType, "application/grpc"):
		d.err = status.Errorf(codes.Internal, "invalid gRPC request content-type %q", h.contentType)
	case h.timeout != "":
		if d.timeout, d.err = parseTimeout(h.timeout); d.err != nil {
			d.err = status.Error(codes.Internal, d.err.Error())
		}
	}
	return d
}

var timeoutUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second,
	'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

// parseTimeout reads a number of at most eight digits and a unit; never 0, which would be no timeout.
func parseTimeout(s string) (time.Duration, error) {
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
	unit, ok := timeoutUnits[s[len(s)-1]]
	if err != nil || !ok || len(s) > 9 {
		return 0, fmt.Errorf("malformed grpc-timeout: %q", s)
	}
	return max(1, time.Duration(min(n, uint64(math.MaxInt64/unit)))*unit), nil
}
