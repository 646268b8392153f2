package apiserver_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/apiserver/admission"
	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// witness is a plugin that notes what it sees, and refuses what it is told to.
type witness struct {
	mu     sync.Mutex // guards what follows
	seen   []string
	refuse string
}

func (w *witness) Mutate(_ context.Context, r *admission.Request) error {
	return w.see("mutate", r)
}

func (w *witness) Validate(_ context.Context, r *admission.Request) error {
	return w.see("validate", r)
}

func (w *witness) see(step string, r *admission.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	resource := r.Resource.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	w.seen = append(w.seen, fmt.Sprintf("%s %s %s %s/%s %s %s (%s → %s) %s",
		step, r.Operation, resource, r.Namespace, r.Name, r.User.Username, r.Kind.Kind, kindOf(r.Old), kindOf(r.Object), kindOf(r.Options)))
	if w.refuse != "" && w.refuse == step {
		return apierrors.NewForbidden(r.Resource.GroupResource(), r.Name, fmt.Errorf("seen in time"))
	}
	return nil
}

func kindOf(obj any) string {
	if obj == nil {
		return "-"
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", obj), "*")
}

// sees returns what has been noted since the last time.
func (w *witness) sees() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.seen
	w.seen = nil
	return out
}

// renamer changes which container a command runs in.
type renamer struct{}

func (renamer) Mutate(_ context.Context, r *admission.Request) error {
	if options, ok := r.Object.(*corev1.PodExecOptions); ok {
		options.Container = "another"
	}
	return nil
}

// A stream is opened as admission has changed it, and not for trial.
func TestAdmissionChangesStreams(t *testing.T) {
	cluster := testcluster.StartAdmitting(t, admission.Config{Disabled: []string{"ServiceAccount"}, Last: []admission.Plugin{{Name: "Renamer", Impl: renamer{}}}})
	c := clientFor(t, cluster.REST(pki.Admin))
	c.post(podsPath, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`).ok()
	c.get(podsPath+"/p/exec?command=sh&stdout=1&container=c").fails(400, metav1.StatusReasonBadRequest, "container another is not valid for pod p")
	c.get(podsPath+"/p/exec?command=sh&stdout=1&dryRun=All").fails(400, metav1.StatusReasonBadRequest, "dryRun is not supported")
}

// There is no way around admission: each verb and subresource passes it, with what it is about.
func TestEveryWayPassesAdmission(t *testing.T) {
	w := &witness{}
	cluster := testcluster.StartAdmitting(t, admission.Config{Disabled: []string{"ServiceAccount"}, Last: []admission.Plugin{{Name: "Witness", Impl: w}}})
	c := clientFor(t, cluster.REST(pki.Admin))
	const pod = `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	const deployments, deployment = "/apis/apps/v1/namespaces/default/deployments", `{"metadata":{"name":"d"},"spec":{"replicas":1,
		"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
	for _, way := range []struct {
		method, path, body string
		sees               string
	}{
		{"POST", podsPath, pod, "CREATE pods default/p kubernetes-admin Pod (- → v1.Pod) v1.CreateOptions"},
		{"PATCH", podsPath + "/p", `{"metadata":{"labels":{"a":"b"}}}`, "UPDATE pods default/p kubernetes-admin Pod (v1.Pod → v1.Pod) v1.UpdateOptions"},
		{"PATCH", podsPath + "/p/status", `{"status":{"message":"m"}}`, "UPDATE pods/status default/p kubernetes-admin Pod (v1.Pod → v1.Pod) v1.UpdateOptions"},
		{"GET", podsPath + "/p/exec?command=sh&stdout=1", "", "CONNECT pods/exec default/p kubernetes-admin PodExecOptions (- → v1.PodExecOptions) -"},
		{"GET", podsPath + "/p/attach?stdout=1", "", "CONNECT pods/attach default/p kubernetes-admin PodAttachOptions (- → v1.PodAttachOptions) -"},
		{"GET", podsPath + "/p/portforward?ports=80", "", "CONNECT pods/portforward default/p kubernetes-admin PodPortForwardOptions (- → v1.PodPortForwardOptions) -"},
		{"PUT", podsPath + "/p/proxy/a/", "", "CONNECT pods/proxy default/p kubernetes-admin PodProxyOptions (- → v1.PodProxyOptions) -"},
		{"OPTIONS", podsPath + "/p/proxy/a/", "", "CONNECT pods/proxy default/p kubernetes-admin PodProxyOptions (- → v1.PodProxyOptions) -"},
		{"GET", "/api/v1/nodes/n/proxy/metrics", "", "CONNECT nodes/proxy /n kubernetes-admin NodeProxyOptions (- → v1.NodeProxyOptions) -"},
		{"GET", "/api/v1/namespaces/default/services/s/proxy/", "", "CONNECT services/proxy default/s kubernetes-admin ServiceProxyOptions (- → v1.ServiceProxyOptions) -"},
		{"POST", podsPath + "/p/binding", `{"metadata":{"name":"p"},"target":{"name":"n"}}`, "CREATE pods/binding default/p kubernetes-admin Binding (- → v1.Binding) v1.CreateOptions"},
		{"POST", "/api/v1/namespaces/default/bindings", `{"metadata":{"name":"p"},"target":{"name":"n"}}`, "CREATE bindings default/p kubernetes-admin Binding (- → v1.Binding) v1.CreateOptions"},
		{"POST", podsPath + "/p/eviction", `{"metadata":{"name":"p"}}`, "CREATE pods/eviction default/p kubernetes-admin Eviction (- → v1.Eviction) v1.CreateOptions"},
		{"DELETE", podsPath + "/p?gracePeriodSeconds=0", "", "DELETE pods default/p kubernetes-admin Pod (v1.Pod → -) v1.DeleteOptions"},
		{"POST", accounts, `{"metadata":{"name":"a"}}`, "CREATE serviceaccounts default/a kubernetes-admin ServiceAccount (- → v1.ServiceAccount) v1.CreateOptions"},
		{"POST", accounts + "/a/token", `{"spec":{}}`, "CREATE serviceaccounts/token default/a kubernetes-admin TokenRequest (- → v1.TokenRequest) v1.CreateOptions"},
		{"DELETE", accounts, "", "DELETE serviceaccounts default/a kubernetes-admin ServiceAccount (v1.ServiceAccount → -) v1.DeleteOptions"},
		{"POST", deployments, deployment, "CREATE deployments default/d kubernetes-admin Deployment (- → v1.Deployment) v1.CreateOptions"},
		{"PATCH", deployments + "/d/scale", `{"spec":{"replicas":2}}`, "UPDATE deployments/scale default/d kubernetes-admin Scale (v1.Scale → v1.Scale) v1.UpdateOptions"},
		{"PUT", deployments + "/d/scale", `{"metadata":{"name":"d"},"spec":{"replicas":3}}`, "UPDATE deployments/scale default/d kubernetes-admin Scale (v1.Scale → v1.Scale) v1.UpdateOptions"},
		{"POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`, "CREATE namespaces n/n kubernetes-admin Namespace (- → v1.Namespace) v1.CreateOptions"},
		{"DELETE", "/api/v1/namespaces/n", "", "DELETE namespaces n/n kubernetes-admin Namespace (v1.Namespace → -) v1.DeleteOptions"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}`,
			"CREATE selfsubjectaccessreviews / kubernetes-admin SelfSubjectAccessReview (- → v1.SelfSubjectAccessReview) v1.CreateOptions"},
	} {
		w.sees()
		headers := []string{}
		if way.method == "PATCH" {
			headers = []string{"Content-Type", mergePatch}
		}
		for _, step := range []string{"validate", "mutate"} { // refused by either: nothing happens
			w.refuse = step
			c.do(way.method, way.path, way.body, headers...).fails(403, "Forbidden", "seen in time")
		}
		w.sees()
		w.refuse = ""
		c.do(way.method, way.path, way.body, headers...)
		require.Equal(t, []string{"mutate " + way.sees, "validate " + way.sees}, w.sees(), way.path)
	}
}
