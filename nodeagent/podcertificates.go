package nodeagent

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"kontiki/nodeagent/volume"
)

// signerPatience is how long one attempt waits for a signer, signerPoll how often it looks. A pod whose certificate takes longer
// tries again, with the same request.
const (
	signerPatience = 5 * time.Second
	signerPoll     = 200 * time.Millisecond
)

// podCertificates has signers certify keys of pods (KEP-4317): it makes a key, asks by a PodCertificateRequest, and waits for the
// answer. Keys of requests without an answer are in memory alone; a request of which nobody has the key any more is removed by a
// controller.
type podCertificates struct {
	client kubernetes.Interface
	node   string

	mu      sync.Mutex // guards pending; not held over requests
	pending map[certificatePlace]*certificateRequest
}

type certificatePlace struct {
	pod   types.UID
	place string
}

// certificateRequest is one that a signer has not answered, or has refused.
type certificateRequest struct {
	namespace, name string
	key             []byte // PEM
}

func newPodCertificates(client kubernetes.Interface, node string) *podCertificates {
	return &podCertificates{client: client, node: node, pending: map[certificatePlace]*certificateRequest{}}
}

// Certificate implements volume.Certificates. A refusal stays one as long as the pod is there, or the agent runs.
func (p *podCertificates) Certificate(ctx context.Context, pod *corev1.Pod, place string, source *corev1.PodCertificateProjection) (*volume.Certificate, error) {
	at := certificatePlace{pod.UID, place}
	p.mu.Lock()
	request := p.pending[at]
	p.mu.Unlock()
	if request == nil {
		var err error
		if request, err = p.ask(ctx, pod, source); err != nil {
			return nil, fmt.Errorf("pod certificate: %w", err)
		}
		p.keep(at, request)
	}
	made, err := p.await(ctx, request)
	if err == nil || apierrors.IsNotFound(err) { // then the next attempt asks anew
		p.keep(at, nil)
	}
	return made, err
}

func (p *podCertificates) keep(at certificatePlace, request *certificateRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if request == nil {
		delete(p.pending, at)
	} else {
		p.pending[at] = request
	}
}

// forget drops what is pending of a pod that is gone.
func (p *podCertificates) forget(pod types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := range p.pending {
		if at.pod == pod {
			delete(p.pending, at)
		}
	}
}

// ask makes a key and a request for it.
func (p *podCertificates) ask(ctx context.Context, pod *corev1.Pod, source *corev1.PodCertificateProjection) (*certificateRequest, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	node, err := p.client.CoreV1().Nodes().Get(ctx, p.node, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	account, err := p.client.CoreV1().ServiceAccounts(pod.Namespace).Get(ctx, pod.Spec.ServiceAccountName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	key, err := newKey(source.KeyType)
	if err != nil {
		return nil, err
	}
	keyPEM, stub, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	made, err := p.client.CertificatesV1().PodCertificateRequests(pod.Namespace).Create(ctx, &certificatesv1.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName:    "req-",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		},
		Spec: certificatesv1.PodCertificateRequestSpec{
			SignerName: source.SignerName, PodName: pod.Name, PodUID: pod.UID,
			ServiceAccountName: account.Name, ServiceAccountUID: account.UID, NodeName: types.NodeName(node.Name), NodeUID: node.UID,
			MaxExpirationSeconds: source.MaxExpirationSeconds, StubPKCS10Request: stub, UnverifiedUserAnnotations: source.UserAnnotations,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &certificateRequest{pod.Namespace, made.Name, keyPEM}, nil
}

// newKey makes a key of a type that the API knows.
func newKey(kind string) (crypto.Signer, error) {
	switch kind {
	case "RSA3072":
		return rsa.GenerateKey(rand.Reader, 3072)
	case "RSA4096":
		return rsa.GenerateKey(rand.Reader, 4096)
	case "ECDSAP256":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ECDSAP384":
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ECDSAP521":
		return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "ED25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("%w: key type %q", volume.ErrUnsupported, kind)
}

// encodeKey is the key in PEM, and a PKCS #10 request that proves to have it and says nothing else.
func encodeKey(key crypto.Signer) (keyPEM, stub []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	stub, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), stub, err
}

// await waits for the signer, for signerPatience.
func (p *podCertificates) await(ctx context.Context, request *certificateRequest) (*volume.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, signerPatience)
	defer cancel()
	for {
		seen, err := p.client.CertificatesV1().PodCertificateRequests(request.namespace).Get(ctx, request.name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("pod certificate: %w", err)
		}
		if made, err := request.outcome(seen); made != nil || err != nil {
			return made, err
		}
		select {
		case <-time.After(signerPoll):
		case <-ctx.Done():
			return nil, fmt.Errorf("pod certificate: the signer %s has not answered %s yet", seen.Spec.SignerName, seen.Name)
		}
	}
}

// outcome is what a signer has answered; nothing if it has not.
func (r *certificateRequest) outcome(seen *certificatesv1.PodCertificateRequest) (*volume.Certificate, error) {
	for _, c := range seen.Status.Conditions {
		switch {
		case c.Status != metav1.ConditionTrue:
		case c.Type == certificatesv1.PodCertificateRequestConditionTypeDenied, c.Type == certificatesv1.PodCertificateRequestConditionTypeFailed:
			return nil, fmt.Errorf("pod certificate: %s is %s: %s: %s", seen.Name, c.Type, c.Reason, c.Message)
		case c.Type == certificatesv1.PodCertificateRequestConditionTypeIssued:
			if seen.Status.BeginRefreshAt == nil {
				return nil, errors.New("pod certificate: " + seen.Name + " does not say when to refresh it")
			}
			return &volume.Certificate{Key: r.key, Chain: blocks(seen.Status.CertificateChain), RefreshAt: seen.Status.BeginRefreshAt.Time}, nil
		}
	}
	return nil, nil
}

// blocks are the PEM blocks of a text, without headers and what is between them.
func blocks(text string) (out []byte) {
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
	return out
}
