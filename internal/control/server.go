package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// Server is what a running process offers. A nil func answers 501: this process has no such part.
type Server struct {
	// StoreStatus returns something that encodes to JSON.
	StoreStatus func(ctx context.Context) (any, error)
	// Store is the store member of this process; see store.go for its calls.
	Store Store
	// StoreClientURL is where the store's etcd API is reached from this machine.
	StoreClientURL func(ctx context.Context) (string, error)
	// ReloadCertificates takes files of certificates into use that have changed.
	ReloadCertificates func(ctx context.Context) error
	// ImportImages reads a `docker save` or OCI archive and returns the names of its images.
	ImportImages func(ctx context.Context, archive io.Reader) ([]string, error)
}

// Handler serves the calls of Client.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /store/status", func(w http.ResponseWriter, r *http.Request) {
		if s.StoreStatus == nil {
			http.Error(w, "this process runs no store", http.StatusNotImplemented)
			return
		}
		reply(w, func() (any, error) { return s.StoreStatus(r.Context()) })
	})
	mux.HandleFunc("GET /store/client-url", func(w http.ResponseWriter, r *http.Request) {
		if s.StoreClientURL == nil {
			http.Error(w, "this process runs no store", http.StatusNotImplemented)
			return
		}
		reply(w, func() (any, error) { return s.StoreClientURL(r.Context()) })
	})
	s.addStore(mux)
	mux.HandleFunc("POST /certificates/reload", func(w http.ResponseWriter, r *http.Request) {
		if s.ReloadCertificates == nil {
			http.Error(w, "this process issues no certificates", http.StatusNotImplemented)
			return
		}
		reply(w, func() (any, error) { return nil, s.ReloadCertificates(r.Context()) })
	})
	mux.HandleFunc("POST /images", func(w http.ResponseWriter, r *http.Request) {
		if s.ImportImages == nil {
			http.Error(w, "this process keeps no images", http.StatusNotImplemented)
			return
		}
		reply(w, func() (any, error) { return s.ImportImages(r.Context(), r.Body) })
	})
	return mux
}

func reply(w http.ResponseWriter, call func() (any, error)) {
	value, err := call()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the caller has gone away
}

// Serve serves on the socket at path until ctx ends. The caller holds the data directory's lock, so
// a socket that is there already was left by a process that is gone.
func (s *Server) Serve(ctx context.Context, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("control socket: %w", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	defer os.Remove(path)
	if err := os.Chmod(path, 0o600); err != nil {
		listener.Close()
		return fmt.Errorf("control socket: %w", err)
	}
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}
