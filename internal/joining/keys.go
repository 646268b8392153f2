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

// answerLimit bounds what is read: of keys, a dozen files of at most a few KiB each.
const answerLimit = 1 << 20

// KeysHandler serves KeysPath. The caller has seen to it that whoever asks may have them.
func KeysHandler(export func() (map[string][]byte, error), log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		files, err := export()
		if err != nil {
			log.Error("keys cannot be handed to a server", "err", err)
			http.Error(w, "the keys cannot be read", http.StatusInternalServerError)
			return
		}
		// The audit log says of the request by whom it was.
		log.Warn("the cluster's keys were handed to a server", "address", r.RemoteAddr, "request", w.Header().Get("Audit-Id"))
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(files) // whoever has gone away asks again
	})
}

// FetchKeys returns the keys that the servers of a cluster share, from the API server at a URL, by a token.
func FetchKeys(ctx context.Context, server string, token bootstraptoken.Join) (files map[string][]byte, err error) {
	err = getByToken(ctx, server, KeysPath, token, &files)
	return files, err
}

// FetchKeysAs is FetchKeys by a certificate, for a server that is of the cluster already.
func FetchKeysAs(ctx context.Context, server string, config *tls.Config) (files map[string][]byte, err error) {
	err = getAs(ctx, server, KeysPath, config, &files)
	return files, err
}

// getByToken gets JSON from a server once it is known to be of the token's cluster.
func getByToken(ctx context.Context, server, path string, token bootstraptoken.Join, into any) error {
	trusted, err := Trust(ctx, server, token.CAHash, time.Now())
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	for _, c := range trusted {
		roots.AddCert(c)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, DisableKeepAlives: true}
	return get(ctx, transport, server, path, "Bearer "+token.Token.Bearer(), into)
}

func getAs(ctx context.Context, server, path string, config *tls.Config, into any) error {
	return get(ctx, &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, server, path, "", into)
}

func get(ctx context.Context, transport http.RoundTripper, server, path, authorization string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(server, "/")+path, nil)
	if err != nil {
		return err
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerLimit))
	if err != nil {
		return err
	}
	if answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusTooManyRequests {
		return fmt.Errorf("%w: %s", ErrUnavailable, reason(answer.StatusCode, body))
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s", ErrRefused, reason(answer.StatusCode, body))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: the answer cannot be read: %w", server, err)
	}
	return nil
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
