package joining

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/internal/bootstraptoken"
)

// KeysPath is where an API server hands out the keys that servers share, to those whom roles let get it:
// kontiki:server-keys is bound to bootstraptoken.ServerGroup.
const KeysPath = "/kontiki/server-keys"

// keysLimit bounds what is read: a dozen files of at most a few KiB each.
const keysLimit = 1 << 20

// KeysHandler serves KeysPath. The caller has seen to it that whoever asks may have them.
func KeysHandler(export func() (map[string][]byte, error), log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		files, err := export()
		if err != nil {
			log.Error("keys cannot be handed to a server", "err", err)
			http.Error(w, "the keys cannot be read", http.StatusInternalServerError)
			return
		}
		log.Warn("the cluster's keys were handed to a server", "address", r.RemoteAddr)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(files) // whoever has gone away asks again
	})
}

// FetchKeys returns the keys that the servers of a cluster share, from the API server at a URL, by a token.
func FetchKeys(ctx context.Context, server string, token bootstraptoken.Join) (map[string][]byte, error) {
	trusted, err := Trust(ctx, server, token.CAHash, time.Now())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	for _, c := range trusted {
		roots.AddCert(c)
	}
	return fetch(ctx, server, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, "Bearer "+token.Token.Bearer())
}

// FetchKeysAs is FetchKeys by a certificate, for a server that is of the cluster already.
func FetchKeysAs(ctx context.Context, server string, config *tls.Config) (map[string][]byte, error) {
	return fetch(ctx, server, config, "")
}

func fetch(ctx context.Context, server string, config *tls.Config, authorization string) (map[string][]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(server, "/")+KeysPath, nil)
	if err != nil {
		return nil, err
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, keysLimit))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s", ErrRefused, reason(answer.StatusCode, body))
	}
	var files map[string][]byte
	if err := json.Unmarshal(body, &files); err != nil {
		return nil, fmt.Errorf("%s: the answer cannot be read: %w", server, err)
	}
	return files, nil
}

// reason is what a refusal says. One that says nothing means that the server does not know the token.
func reason(code int, body []byte) string {
	var status metav1.Status
	_ = json.Unmarshal(body, &status)
	return Reason(code, status.Message)
}

// Reason completes the message of a refusal.
func Reason(code int, message string) string {
	switch {
	case code == http.StatusUnauthorized && (message == "" || message == "Unauthorized"):
		return "it does not know it: it was revoked or has expired, see `kontiki token list` there"
	case code == http.StatusForbidden:
		return "it is not for this: make one with `kontiki token create`, for a server with --for server (" + message + ")"
	case message == "":
		return http.StatusText(code)
	}
	return message
}
