package nodeagent

import (
	"context"
	"maps"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

// refreshAge is how old a ConfigMap or Secret may be when volumes are refreshed. Starts of pods and containers
// always ask the API server.
const refreshAge = 30 * time.Second

// objects reads the ConfigMaps, Secrets and trust bundles that pods refer to. It asks for each by name: a node may
// read only what its pods use. What was read is shared for a short while, so that many pods with the same
// volume cost one request.
type objects struct {
	client kubernetes.Interface

	mu   sync.Mutex // guards read; not held over requests
	read map[objectKey]reading
}

type objectKey struct{ kind, namespace, name string }

type reading struct {
	at     time.Time
	object any
}

func newObjects(client kubernetes.Interface) *objects {
	return &objects{client: client, read: map[objectKey]reading{}}
}

// maxAge returns a view whose objects were read at most so long ago.
func (o *objects) maxAge(age time.Duration) *objectView { return &objectView{o, age} }

// objectView implements volume.Sources.
type objectView struct {
	*objects
	age time.Duration
}

// ConfigMap returns a config map of the namespace.
func (v *objectView) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return get(ctx, v, objectKey{"ConfigMap", namespace, name}, v.client.CoreV1().ConfigMaps(namespace).Get)
}

// Secret returns a secret of the namespace.
func (v *objectView) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return get(ctx, v, objectKey{"Secret", namespace, name}, v.client.CoreV1().Secrets(namespace).Get)
}

// ClusterTrustBundle returns the one of a name.
func (v *objectView) ClusterTrustBundle(ctx context.Context, name string) (*certificatesv1.ClusterTrustBundle, error) {
	return get(ctx, v, objectKey{"ClusterTrustBundle", "", name}, v.client.CertificatesV1().ClusterTrustBundles().Get)
}

// ClusterTrustBundles returns those of a signer.
func (v *objectView) ClusterTrustBundles(ctx context.Context, signer string) ([]certificatesv1.ClusterTrustBundle, error) {
	list, err := get(ctx, v, objectKey{"ClusterTrustBundles", "", signer}, func(ctx context.Context, _ string, _ metav1.GetOptions) (*certificatesv1.ClusterTrustBundleList, error) {
		return v.client.CertificatesV1().ClusterTrustBundles().List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.signerName", signer).String()})
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func get[T any](ctx context.Context, v *objectView, key objectKey, fetch func(context.Context, string, metav1.GetOptions) (*T, error)) (*T, error) {
	v.mu.Lock()
	had, ok := v.read[key]
	v.mu.Unlock()
	if ok && time.Since(had.at) < v.age {
		return had.object.(*T), nil
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	at := time.Now()
	object, err := fetch(ctx, key.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.read, func(_ objectKey, r reading) bool { return time.Since(r.at) > 2*refreshAge })
	v.read[key] = reading{at, object}
	return object, nil
}

// Token implements volume.Tokens: a token for the pod's service account, bound to the pod.
func (o *objects) Token(ctx context.Context, pod *corev1.Pod, audience string, lifetimeSeconds int64) (string, time.Time, error) {
	spec := authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &lifetimeSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}
	if audience != "" {
		spec.Audiences = []string{audience}
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	got, err := o.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return "", time.Time{}, err
	}
	return got.Status.Token, got.Status.ExpirationTimestamp.Time, nil
}
