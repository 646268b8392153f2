package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// What the Node authorizer leaves to admission, since it does not see the object that is created.
func TestNodesSpeakForThemselves(t *testing.T) {
	mine, others := podOn("n"), podOn("m")
	mine.UID, mine.Spec.ServiceAccountName = "p-uid", "robot"
	others.Name, others.UID, others.Spec.ServiceAccountName = "other", "p-uid", "robot"
	account := &corev1.ServiceAccount{ObjectMeta: inNS("robot")}
	account.UID = "a-uid"
	p := nodeRestriction{&cluster{objects: []runtime.Object{mine, others, account}}}
	slice := func(node *string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{ObjectMeta: named("s"), Spec: resourcev1.ResourceSliceSpec{NodeName: node}}
	}
	certificate := func(change func(*certificatesv1.PodCertificateRequestSpec)) *certificatesv1.PodCertificateRequest {
		r := &certificatesv1.PodCertificateRequest{ObjectMeta: inNS("r"), Spec: certificatesv1.PodCertificateRequestSpec{
			PodName: "p", PodUID: "p-uid", ServiceAccountName: "robot", ServiceAccountUID: "a-uid", NodeName: "n"}}
		change(&r.Spec)
		return r
	}
	for _, ok := range []*Request{
		write(slice(ptr.To("n")), nil, ""), write(nil, slice(ptr.To("n")), ""),
		write(certificate(func(*certificatesv1.PodCertificateRequestSpec) {}), nil, ""),
	} {
		require.NoError(t, p.Validate(t.Context(), asNode(ok)))
	}
	for message, refused := range map[string]runtime.Object{
		"with the same NodeName":  slice(ptr.To("m")),
		"as the requesting node":  slice(nil),
		"spec.nodeName set to":    certificate(func(s *certificatesv1.PodCertificateRequestSpec) { s.NodeName = types.NodeName("m") }),
		`"none" does not exist`:   certificate(func(s *certificatesv1.PodCertificateRequestSpec) { s.PodName = "none" }),
		`pod "p" has another uid`: certificate(func(s *certificatesv1.PodCertificateRequestSpec) { s.PodUID = "x" }),
		`"other" is not on node`:  certificate(func(s *certificatesv1.PodCertificateRequestSpec) { s.PodName = "other" }),
		`service account "admin"`: certificate(func(s *certificatesv1.PodCertificateRequestSpec) { s.ServiceAccountName = "admin" }),
		`"robot" has another uid`: certificate(func(s *certificatesv1.PodCertificateRequestSpec) { s.ServiceAccountUID = "x" }),
	} {
		forbidden(t, p.Validate(t.Context(), asNode(write(refused, nil, ""))), message)
	}
}
