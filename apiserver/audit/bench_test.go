package audit

import (
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// BenchmarkMetadata is what the default policy costs a create: one event, encoded and written.
func BenchmarkMetadata(b *testing.B) {
	a, err := Open(Config{File: &FileConfig{Path: filepath.Join(b.TempDir(), "audit.log"), MaxSizeMB: 100, MaxBackups: 1, Mode: ModeBlocking}})
	require.NoError(b, err)
	r := httptest.NewRequest("POST", "/api/v1/namespaces/default/pods?fieldManager=bench", nil)
	r.Header.Set("User-Agent", "bench/v1 (linux/amd64)")
	user := authenticationv1.UserInfo{Username: "kubernetes-admin", Groups: []string{"system:masters", "system:authenticated"}}
	b.ReportAllocs()
	for b.Loop() {
		q := &Request{User: user, Verb: "create", Path: r.URL.Path, Version: "v1", Resource: "pods", Namespace: "default"}
		record := a.Begin(r, q, "5affe9da-e9ba-4eae-b855-52d64dddc4a3", time.Now())
		_ = record.Received()
		record.annotate("authorization.k8s.io/decision", "allow")
		record.annotate("authorization.k8s.io/reason", "")
		record.Completed(201)
	}
	require.NoError(b, a.Close())
}
