package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kontiki/apiserver/nodeauth"
	"kontiki/apiserver/registry"
	"kontiki/apiserver/tokens"
)

// Tokens of service accounts: package tokens signs and reads them; here is what the cluster knows in addition, which
// accounts, pods, secrets and nodes there are.

var (
	serviceAccounts = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	pods            = corev1.SchemeGroupVersion.WithResource("pods")
	secrets         = corev1.SchemeGroupVersion.WithResource("secrets")
	nodes           = corev1.SchemeGroupVersion.WithResource("nodes")
)

// DefaultTokenIssuer is the issuer that tokens of service accounts name, as with kubeadm.
const DefaultTokenIssuer = "https://kubernetes.default.svc.cluster.local"

// SecretToken makes the token that a Secret of type kubernetes.io/service-account-token is to have.
func (s *Server) SecretToken(namespace, secret, account, accountUID string) (string, error) {
	return s.tokens.SignLegacy(namespace, secret, tokens.Object{Name: account, UID: accountUID})
}

// Groups that every service account is in, the second with its namespace.
const (
	groupServiceAccounts       = "system:serviceaccounts"
	groupServiceAccountsPrefix = "system:serviceaccounts:"
)

// What UserInfo.extra says of a token and of what it is bound to.
const (
	extraPodName  = "authentication.kubernetes.io/pod-name"
	extraPodUID   = "authentication.kubernetes.io/pod-uid"
	extraNodeName = "authentication.kubernetes.io/node-name"
	extraNodeUID  = "authentication.kubernetes.io/node-uid"
)

// boundGrace is how much longer than its deletion asked for a pod's, or account's, token is good: its last requests are
// those of its end.
const boundGrace = time.Minute

var errTokenOver = fmt.Errorf("%w: what it is bound to is gone", tokens.ErrInvalid)

// stillThere is nil if the account and what the token is bound to exist: the same ones, not others of the same name.
func (s *Server) stillThere(ctx context.Context, k *tokens.Binding) error {
	if err := s.sameObject(ctx, serviceAccounts, k.Namespace, &k.ServiceAccount); err != nil {
		return err
	}
	if k.Pod != nil { // its node is told in addition; the token ends with the pod
		return s.sameObject(ctx, pods, k.Namespace, k.Pod)
	}
	if k.Secret != nil {
		return s.sameObject(ctx, secrets, k.Namespace, k.Secret)
	}
	if k.Node != nil {
		return s.sameObject(ctx, nodes, "", k.Node)
	}
	return nil
}

func (s *Server) sameObject(ctx context.Context, resource schema.GroupVersionResource, namespace string, wanted *tokens.Object) error {
	found, err := s.find(ctx, resource, namespace, wanted.Name)
	if apierrors.IsNotFound(err) {
		return errTokenOver
	}
	if err != nil {
		return err
	}
	m := accessor(found)
	if string(m.GetUID()) != wanted.UID {
		return errTokenOver
	}
	if end := m.GetDeletionTimestamp(); end != nil && time.Now().After(end.Add(boundGrace)) {
		return errTokenOver
	}
	return nil
}

// IssueToken implements registry.Server.
func (a answering) IssueToken(ctx context.Context, account *corev1.ServiceAccount, request *authenticationv1.TokenRequest, life time.Duration) error {
	binding := tokens.Binding{Namespace: account.Namespace, ServiceAccount: tokens.Object{Name: account.Name, UID: string(account.UID)}}
	if err := checkUID(serviceAccounts, account.Name, request.UID, account.UID); err != nil {
		return err
	}
	if err := a.s.bindToken(ctx, &binding, request.Spec.BoundObjectRef); err != nil {
		return err
	}
	token, claims, err := a.s.tokens.Sign(binding, request.Spec.Audiences, life)
	if err != nil {
		return err
	}
	if len(request.Spec.Audiences) == 0 {
		request.Spec.Audiences = claims.Audience
	}
	request.CreationTimestamp = metav1.NewTime(claims.IssuedAt.Time)
	request.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(claims.Expires())}
	return nil
}

// bindToken makes the token end with an object.
func (s *Server) bindToken(ctx context.Context, binding *tokens.Binding, ref *authenticationv1.BoundObjectReference) error {
	node, isNode := nodeauth.NodeOf(userOf(registry.AskerOf(ctx)).rbac())
	if isNode && (ref == nil || ref.Kind != "Pod" || ref.UID == "") {
		return apierrors.NewForbidden(serviceAccounts.GroupResource(), binding.ServiceAccount.Name, fmt.Errorf("node %q may only request tokens bound to a pod, by its uid", node))
	}
	if ref == nil {
		return nil
	}
	find := func(resource schema.GroupVersionResource, namespace string) (runtime.Object, *tokens.Object, error) {
		found, err := s.find(ctx, resource, namespace, ref.Name)
		if err != nil {
			return nil, nil, err
		}
		uid := accessor(found).GetUID()
		return found, &tokens.Object{Name: ref.Name, UID: string(uid)}, checkUID(resource, ref.Name, ref.UID, uid)
	}
	var err error
	switch kind := ref.APIVersion + " " + ref.Kind; kind {
	case "v1 Pod":
		var found runtime.Object
		if found, binding.Pod, err = find(pods, binding.Namespace); err != nil {
			return err
		}
		pod := found.(*corev1.Pod)
		if isNode && pod.Spec.NodeName != node {
			return apierrors.NewForbidden(serviceAccounts.GroupResource(), binding.ServiceAccount.Name, fmt.Errorf("node %q requested a token bound to a pod scheduled on a different node", node))
		}
		return s.tellNode(ctx, binding, pod)
	case "v1 Secret":
		_, binding.Secret, err = find(secrets, binding.Namespace)
	case "v1 Node":
		_, binding.Node, err = find(nodes, "")
	default:
		err = badRequest("cannot bind token to object of type %s, Kind=%s: only to a Pod, Secret or Node of v1", ref.APIVersion, ref.Kind)
	}
	return err
}

// tellNode puts the pod's node into the token as well, so that what receives it can tell where it comes from.
func (s *Server) tellNode(ctx context.Context, binding *tokens.Binding, pod *corev1.Pod) error {
	if pod.Spec.ServiceAccountName != binding.ServiceAccount.Name {
		return badRequest("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", binding.ServiceAccount.Name)
	}
	if pod.Spec.NodeName == "" {
		return nil
	}
	binding.Node = &tokens.Object{Name: pod.Spec.NodeName}
	node, err := s.find(ctx, nodes, "", pod.Spec.NodeName)
	if err == nil {
		binding.Node.UID = string(accessor(node).GetUID())
	}
	if apierrors.IsNotFound(err) {
		return nil // it is going, and so is the pod
	}
	return err
}

func checkUID(resource schema.GroupVersionResource, name string, wanted, found types.UID) error {
	if wanted == "" || wanted == found {
		return nil
	}
	return apierrors.NewConflict(resource.GroupResource(), name, fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", wanted))
}

// serveDiscovery and serveKeys are OpenID Connect discovery: how others can check the tokens of service accounts.
func (s *Server) serveDiscovery(w http.ResponseWriter, _ *http.Request) error {
	keys := s.tokens.URL() + keysPath
	if address := s.config.AdvertiseAddress; address.IsValid() {
		keys = "https://" + netip.AddrPortFrom(address, s.config.AdvertisePort).String() + keysPath
	}
	document, err := s.tokens.Discovery(keys)
	return writeDocument(w, "application/json", document, err)
}

func (s *Server) serveKeys(w http.ResponseWriter, _ *http.Request) error {
	document, err := s.tokens.KeySet()
	return writeDocument(w, "application/jwk-set+json", document, err)
}

// Where discovery and keys are.
const (
	discoveryPath = "/.well-known/openid-configuration"
	keysPath      = "/openid/v1/jwks"
)

func writeDocument(w http.ResponseWriter, mediaType string, document []byte, err error) error {
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Cache-Control", "public, max-age=3600")
	_, _ = w.Write(document) // fails when the client has gone
	return nil
}
