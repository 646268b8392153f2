package nodeagent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/mux"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/internal/lingering"
	"kontiki/internal/livetls"
)

// Who may use the agent's port: the API server and cluster administrators. Other certificates of the cluster's CA, those
// of other nodes above all, may not.
var (
	allowedNames  = []string{"kube-apiserver-kubelet-client", "system:apiserver"}
	allowedGroups = []string{"system:masters"}
)

// shutdownPatience is how long streams may go on when the agent stops.
const shutdownPatience = time.Second

// serve answers on the agent's port until ctx ends.
func (a *Agent) serve(ctx context.Context) error {
	listener := a.cfg.Listen
	if listener == nil {
		var err error
		if listener, err = net.Listen("tcp", a.cfg.Address); err != nil {
			return fmt.Errorf("agent port: %w", err)
		}
	}
	tlsConfig := livetls.Server(a.cfg.ServingTLS, func(config *tls.Config) {
		config.ClientAuth = tls.RequireAndVerifyClientCert
		config.NextProtos = []string{"http/1.1"} // exec and port-forward upgrade the connection
	})
	server := &http.Server{
		Handler: a.handler(), ReadHeaderTimeout: 30 * time.Second,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	closing := lingering.Listen(listener)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(tls.NewListener(closing, tlsConfig)) }()
	select {
	case err := <-failed:
		return fmt.Errorf("agent port: %w", err)
	case <-ctx.Done():
	}
	stopCtx, cancel := context.WithTimeout(context.Background(), shutdownPatience)
	defer cancel()
	if server.Shutdown(stopCtx) != nil {
		server.Close()
	}
	closing.Drain(stopCtx)
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler has the kubelet's paths.
func (a *Agent) handler() http.Handler {
	a.metrics.watchPods(func() int { return len(a.pods.known()) })
	r := mux.NewRouter()
	r.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	r.HandleFunc("/pods", a.servePods).Methods(http.MethodGet)
	r.HandleFunc("/stats/summary", a.serveSummary).Methods(http.MethodGet)
	r.Handle("/metrics", a.metrics.handler()).Methods(http.MethodGet)
	r.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", a.serveLogs).Methods(http.MethodGet)
	r.HandleFunc("/exec/{namespace}/{pod}/{container}", a.serveExec).Methods(http.MethodGet, http.MethodPost)
	r.HandleFunc("/attach/{namespace}/{pod}/{container}", a.serveAttach).Methods(http.MethodGet, http.MethodPost)
	r.HandleFunc("/portForward/{namespace}/{pod}", a.servePortForward).Methods(http.MethodGet, http.MethodPost)
	return allowed(r)
}

// allowed refuses everyone whose certificate is not of those that may use the port.
func allowed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		inGroup := func(g string) bool { return slices.Contains(allowedGroups, g) }
		if !slices.Contains(allowedNames, subject.CommonName) && !slices.ContainsFunc(subject.Organization, inGroup) {
			http.Error(w, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource=proxy)", subject.CommonName, r.Method), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// servePods lists the pods that the agent has in hand.
func (a *Agent) servePods(w http.ResponseWriter, _ *http.Request) {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for _, pod := range a.pods.known() {
		if pod != nil {
			list.Items = append(list.Items, *pod)
		}
	}
	writeJSON(w, list)
}

func writeJSON(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // a client that has left needs no answer
}

// podOf finds the pod that a request is about, or answers 404.
func (a *Agent) podOf(w http.ResponseWriter, r *http.Request) *corev1.Pod {
	namespace, name, uid := mux.Vars(r)["namespace"], mux.Vars(r)["pod"], r.URL.Query().Get("uid")
	var found *corev1.Pod
	for _, pod := range a.pods.known() {
		if pod == nil || pod.Namespace != namespace || pod.Name != name || uid != "" && string(pod.UID) != uid {
			continue
		}
		if found == nil || found.CreationTimestamp.Before(&pod.CreationTimestamp) {
			found = pod // the old one of that name may not be gone yet
		}
	}
	if found == nil {
		http.Error(w, fmt.Sprintf("pod does not exist: pod %q not found in namespace %q", name, namespace), http.StatusNotFound)
	}
	return found
}
