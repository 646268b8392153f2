package certificates_test

import (
	"bytes"
	"log/slog"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kontiki/internal/bootstraptoken"
	"kontiki/nodeagent/certificates"
)

// written is a log that a test reads while it is written.
type written struct {
	mu  sync.Mutex // guards all
	all bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

// TestLeftToPeople: a node whose certificate no controller approves, here since another node has its address, says so at once,
// and why, and how somebody else does.
func TestLeftToPeople(t *testing.T) {
	c := start(t)
	_, err := c.admin().CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w2"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.admin().CoreV1().Nodes().Patch(t.Context(), "w2", types.MergePatchType,
		[]byte(`{"status":{"addresses":[{"type":"InternalIP","address":"`+nodeIP.String()+`"}]}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	log := &written{}
	config := c.config(c.token(bootstraptoken.Spec{Authentication: true}))
	config.Log = slog.New(slog.NewTextHandler(log, nil))
	m, err := certificates.Open(t.Context(), config)
	require.NoError(t, err)
	c.keep(m)
	command := regexp.MustCompile(`"kubectl certificate approve (\S+)"`)
	require.Eventually(t, func() bool { return command.MatchString(log.String()) }, time.Minute, 20*time.Millisecond)
	require.Contains(t, log.String(), "address of node w2")

	name := command.FindStringSubmatch(log.String())[1]
	requests := c.admin().CertificatesV1().CertificateSigningRequests()
	require.Eventually(t, func() bool { // a controller may write to it at the same time
		csr, err := requests.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ByHand",
		})
		_, err = requests.UpdateApproval(t.Context(), name, csr, metav1.UpdateOptions{})
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	require.Eventually(t, func() bool { return c.works(m) == nil }, time.Minute, 20*time.Millisecond)
}
