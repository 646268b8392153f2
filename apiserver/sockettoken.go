package apiserver

import (
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

// bearerProtocol begins the subprotocol in which a browser sends its token, since it cannot set headers. It is never the answer.
const bearerProtocol = "base64url.bearer.authorization.k8s.io."

// socketToken is the token that a WebSocket's subprotocols have, and takes it out of them; empty if there is none. There must be another
// subprotocol, which is the one that is spoken.
func socketToken(r *http.Request) (string, error) {
	if !websocket.IsWebSocketUpgrade(r) {
		return "", nil
	}
	token, others := "", []string{}
	for _, protocol := range websocket.Subprotocols(r) {
		encoded, isToken := strings.CutPrefix(protocol, bearerProtocol)
		if !isToken {
			others = append(others, protocol)
			continue
		}
		decoded, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil || len(decoded) == 0 || !utf8.Valid(decoded) || token != "" {
			return "", errUnauthorized
		}
		token = string(decoded)
	}
	if token == "" {
		return "", nil
	}
	if len(others) == 0 {
		return "", errUnauthorized
	}
	r.Header.Set("Sec-WebSocket-Protocol", strings.Join(others, ", "))
	return token, nil
}

// dropSocketTokens takes out the tokens that nobody has looked at, since a certificate or another header has said who it is.
func dropSocketTokens(header http.Header) {
	kept, found := []string{}, false
	for protocol := range strings.SplitSeq(strings.Join(header.Values("Sec-WebSocket-Protocol"), ","), ",") {
		if protocol = strings.TrimSpace(protocol); strings.HasPrefix(protocol, bearerProtocol) {
			found = true
		} else if protocol != "" {
			kept = append(kept, protocol)
		}
	}
	switch {
	case !found:
	case len(kept) == 0:
		header.Del("Sec-WebSocket-Protocol")
	default:
		header.Set("Sec-WebSocket-Protocol", strings.Join(kept, ", "))
	}
}
