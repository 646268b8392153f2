package controllers

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"

	"kontiki/internal/joining"
)

// csrApproving approves what nodes ask for. A client certificate is approved for whom roles let have it: who asks for one of
// any node may create certificatesigningrequests/nodeclient, a node that asks for itself …/selfnodeclient (Kubernetes'
// documentation, "TLS bootstrapping"). Kubernetes leaves serving certificates to people; here a node gets one for its name
// and addresses, as long as they are not another node's, a Service's or an API server's, for which it could stand in then.
type csrApproving struct {
	client   kubernetes.Interface
	requests certificateslisters.CertificateSigningRequestLister
	nodes    corelisters.NodeLister
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
}

func addCSRApproving(m *manager) error {
	if m.config.Signer == nil {
		return nil
	}
	client, err := m.client("certificate")
	if err != nil {
		return err
	}
	requests, nodes := m.shared.Certificates().V1().CertificateSigningRequests(), m.shared.Core().V1().Nodes()
	services, endpoints := m.shared.Core().V1().Services(), m.shared.Discovery().V1().EndpointSlices()
	nodes.Informer() // asked for, so that they are started
	services.Informer()
	endpoints.Informer()
	c := m.add("csr-approving", 2, &csrApproving{client: client, requests: requests.Lister(), nodes: nodes.Lister(), services: services.Lister(), slices: endpoints.Lister()})
	watch(c, requests.Informer(), requestFor[*certificatesv1.CertificateSigningRequest])
	return nil
}

func (a *csrApproving) Reconcile(ctx context.Context, req Request) (Result, error) {
	csr, err := a.requests.Get(req.Name)
	if err != nil {
		return Result{}, ignoreNotFound(err)
	}
	if hasCondition(csr, certificatesv1.CertificateApproved) || hasCondition(csr, certificatesv1.CertificateDenied) || len(csr.Status.Certificate) > 0 {
		return Result{}, nil
	}
	request, err := parseSigningRequest(csr)
	if err != nil {
		return Result{}, nil // the API server takes none such
	}
	message := ""
	switch {
	case csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName && checkNodeClient(request, usagesOf(csr)) == nil:
		message, err = a.judgeClient(ctx, csr, request)
	case csr.Spec.SignerName == certificatesv1.KubeletServingSignerName && checkNodeServing(request, usagesOf(csr)) == nil:
		message, err = a.judgeServing(csr, request)
	default:
		return Result{}, nil // for somebody else to judge
	}
	if errors.Is(err, ErrNotApproved) {
		err = errors.Join(err, a.tell(ctx, csr, err.Error()))
	}
	if err != nil {
		return Result{}, fmt.Errorf("request %s of %s: %w", csr.Name, csr.Spec.Username, err)
	}
	approved := csr.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApproved", Message: message,
	})
	_, err = a.client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.Name, approved, metav1.UpdateOptions{})
	return Result{}, ignoreNotFound(err)
}

// tell has the request say why it is left to people: its maker waits, and would know of nothing.
func (a *csrApproving) tell(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, why string) error {
	if hasCondition(csr, joining.LeftToPeople) {
		return nil
	}
	told := csr.DeepCopy()
	told.Status.Conditions = append(told.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: joining.LeftToPeople, Status: corev1.ConditionTrue, Reason: "NotAutoApproved", Message: why,
	})
	_, err := a.client.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, told, metav1.UpdateOptions{})
	return ignoreNotFound(err)
}

// judgeClient asks whether the requester may have the certificate.
func (a *csrApproving) judgeClient(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, request *x509.CertificateRequest) (string, error) {
	if request.Subject.CommonName == csr.Spec.Username {
		if may, err := a.may(ctx, csr, "selfnodeclient"); may || err != nil {
			return "Auto approving self kubelet client certificate after SubjectAccessReview.", err
		}
	}
	may, err := a.may(ctx, csr, "nodeclient")
	if err == nil && !may {
		err = fmt.Errorf("%w: no role lets the requester create certificatesigningrequests/nodeclient", ErrNotApproved)
	}
	return "Auto approving kubelet client certificate after SubjectAccessReview.", err
}

func (a *csrApproving) may(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, subresource string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: certificatesv1.GroupName, Version: "*", Resource: "certificatesigningrequests", Subresource: subresource, Verb: "create",
		},
	}}
	for key, values := range csr.Spec.Extra {
		review.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	answer, err := a.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// judgeServing: it is the node itself that asks, under its name, for addresses that no other node has.
func (a *csrApproving) judgeServing(csr *certificatesv1.CertificateSigningRequest, request *x509.CertificateRequest) (string, error) {
	user := request.Subject.CommonName
	name := strings.TrimPrefix(user, nodeUserPrefix)
	if csr.Spec.Username != user || !slices.Contains(csr.Spec.Groups, nodesGroup) {
		return "", fmt.Errorf("%w: it is for %s", ErrNotApproved, user)
	}
	if !slices.Equal(slices.Compact(slices.Sorted(slices.Values(request.DNSNames))), []string{name}) && len(request.DNSNames) > 0 {
		return "", fmt.Errorf("%w: the only DNS name that %s may have is %q", ErrNotApproved, user, name)
	}
	if len(request.DNSNames) > 0 && standsForService(name) {
		return "", fmt.Errorf("%w: %s is no name of a machine", ErrNotApproved, name)
	}
	taken, err := a.addressesOfOthers(name)
	if err != nil {
		return "", err
	}
	for _, ip := range request.IPAddresses {
		if ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() {
			return "", fmt.Errorf("%w: %s is no address of a machine", ErrNotApproved, ip)
		}
		if owner := taken[ip.String()]; owner != "" {
			return "", fmt.Errorf("%w: %s is an address of %s", ErrNotApproved, ip, owner)
		}
	}
	return "Auto approving kubelet serving certificate for the names and addresses of the node.", nil
}

// standsForService says whether clients in the cluster call a Service, the API server's above all, or themselves by a name,
// which nobody keeps a node from having.
func standsForService(name string) bool {
	return name == "localhost" || name == "kubernetes" || name == "kubernetes.default" || strings.HasSuffix(name, ".svc") || strings.Contains(name, ".svc.")
}

// addressesOfOthers are those that a node may not have, with whose they are.
func (a *csrApproving) addressesOfOthers(name string) (map[string]string, error) {
	taken := map[string]string{}
	nodes, err := a.nodes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		for _, address := range node.Status.Addresses {
			if node.Name != name {
				taken[address.Address] = "node " + node.Name
			}
		}
	}
	services, err := a.services.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	for _, service := range services {
		for _, address := range service.Spec.ClusterIPs {
			taken[address] = "service " + service.Namespace + "/" + service.Name
		}
	}
	servers, err := a.slices.EndpointSlices(metav1.NamespaceDefault).List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: "kubernetes"}))
	if err != nil {
		return nil, err
	}
	for _, slice := range servers {
		for _, endpoint := range slice.Endpoints {
			for _, address := range endpoint.Addresses {
				taken[address] = "an API server"
			}
		}
	}
	return taken, nil
}
