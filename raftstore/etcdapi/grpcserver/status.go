package grpcserver

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/status"
)

// maxMessageText bounds the text of a status, so that its headers fit into one frame (writer.writeHeaders).
const maxMessageText = 4 << 10

var trailersOK = []hpack.HeaderField{{Name: "grpc-status", Value: "0"}}

// trailers say how a call has ended.
func trailers(err error) []hpack.HeaderField {
	if err == nil {
		return trailersOK
	}
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	fields := []hpack.HeaderField{{Name: "grpc-status", Value: strconv.Itoa(int(s.Code()))}}
	if text := s.Message(); text != "" {
		fields = append(fields, hpack.HeaderField{Name: "grpc-message", Value: escape(text[:min(len(text), maxMessageText)])})
	}
	return fields
}

// escape writes what is not printable ASCII, and the percent sign, in percent encoding (PROTOCOL-HTTP2.md, Status-Message).
func escape(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
