package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

// serve answers every path with one line that says who answers. The names come from the environment,
// where a pod template puts them with fieldRef and configMapKeyRef.
func serve(ctx context.Context, args []string) error {
	address := ":8080"
	if len(args) > 0 {
		address = args[0]
	}
	server := &http.Server{Addr: address, Handler: http.HandlerFunc(introduce), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	fmt.Println("hello: serving on", address)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// Requests that have begun get a second to end.
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := server.Shutdown(stopping); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

func introduce(w http.ResponseWriter, r *http.Request) {
	fmt.Printf("%s %s from %s\n", r.Method, r.URL.Path, r.RemoteAddr)
	host, _ := os.Hostname()
	fmt.Fprintf(w, "%s I am pod %s in namespace %s on node %s.\n",
		cmp.Or(os.Getenv("GREETING"), "Hello!"),
		cmp.Or(os.Getenv("POD_NAME"), host),
		cmp.Or(os.Getenv("POD_NAMESPACE"), "unknown"),
		cmp.Or(os.Getenv("NODE_NAME"), "unknown"))
}
