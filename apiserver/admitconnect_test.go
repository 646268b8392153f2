package apiserver

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"kontiki/apiserver/registry"
)

// What admission makes of how a stream is asked for is what is asked for then.
func TestStreamsAreAskedForAsAdmitted(t *testing.T) {
	for _, changed := range []runtime.Object{
		&corev1.PodExecOptions{Stdout: true, Container: "other", Command: []string{"ls", "-l"}},
		&corev1.PodAttachOptions{Stdin: true, TTY: true},
		&corev1.PodPortForwardOptions{Ports: []int32{80, 8080}},
		&corev1.PodPortForwardOptions{},
		&corev1.PodProxyOptions{Path: "/a/b"},
		&corev1.NodeProxyOptions{},
		&corev1.ServiceProxyOptions{Path: "/c"},
	} {
		kinds, _, err := scheme.Scheme.ObjectKinds(changed)
		require.NoError(t, err)
		r := httptest.NewRequest("GET", "/?stdin=1&stderr=1&container=c&command=sh&ports=1&other=kept", nil)
		before := r.URL.String()
		url := r.URL
		target := &target{sub: &registry.Subresource{Kind: schema.GroupVersionKind{Version: "v1", Kind: kinds[0].Kind}}, subpath: "was"}
		askFor(r, target, changed)
		got, err := connectOptions(target, r.URL.Query())
		require.NoError(t, err)
		require.Equal(t, changed, got)
		require.Equal(t, "kept", r.URL.Query().Get("other"))
		require.Equal(t, before, url.String(), "the audit log has the URL as it was")
	}
}
