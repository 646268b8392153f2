package apiserver_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authenticationv1 "k8s.io/api/authentication/v1"

	"kontiki/internal/bootstraptoken"
)

const systemSecrets = "/api/v1/namespaces/kube-system/secrets"

// newToken makes a token known to the cluster.
func newToken(c *client, spec bootstraptoken.Spec) bootstraptoken.Token {
	c.t.Helper()
	token, err := bootstraptoken.New()
	require.NoError(c.t, err)
	body, err := json.Marshal(bootstraptoken.ToSecret(token, spec))
	require.NoError(c.t, err)
	c.post(systemSecrets, string(body)).ok()
	return token
}

func TestBootstrapTokens_RB03(t *testing.T) {
	cluster, c := start(t)
	now := time.Now()
	token := newToken(c, bootstraptoken.Spec{Authentication: true, Expires: now.Add(time.Hour)})
	machine := tokenClient(t, cluster, token.Bearer())
	who := whoami(machine)
	require.Equal(t, "system:bootstrap:"+token.ID, who.Username)
	require.Equal(t, []string{"system:bootstrappers", "system:authenticated"}, who.Groups)

	// It may ask for a node's certificate, and see what became of that: nothing else.
	const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	eventually(t, func() bool { return machine.get(requests).code == 200 })
	for _, path := range []string{maps, systemSecrets, "/api/v1/nodes", "/kontiki/server-keys"} {
		machine.get(path).fails(403, metav1.StatusReasonForbidden, "system:bootstrap:"+token.ID)
	}
	machine.do("PUT", requests+"/x/approval", "{}").fails(403, metav1.StatusReasonForbidden, "")

	server := newToken(c, bootstraptoken.Spec{Authentication: true, Groups: []string{bootstraptoken.ServerGroup}})
	require.Equal(t, []string{"system:bootstrappers", "system:authenticated", bootstraptoken.ServerGroup}, whoami(tokenClient(t, cluster, server.Bearer())).Groups)

	refused := func(token, why string) {
		t.Helper()
		tokenClient(t, cluster, token).get(requests).fails(401, metav1.StatusReasonUnauthorized, why)
		review := decoded[authenticationv1.TokenReview](c.post("/apis/authentication.k8s.io/v1/tokenreviews", fmt.Sprintf(`{"spec":{"token":%q}}`, token)).ok())
		require.False(t, review.Status.Authenticated)
	}
	expired := newToken(c, bootstraptoken.Spec{Authentication: true, Expires: now.Add(-time.Second)})
	refused(expired.Bearer(), "bootstrap token "+expired.ID+" has expired")
	refused(expired.ID+"."+token.Secret, "Unauthorized")
	refused(token.ID+"."+expired.Secret, "Unauthorized")
	refused(newToken(c, bootstraptoken.Spec{Signing: true}).Bearer(), "Unauthorized")
	refused("abcdef.0123456789abcdef", "Unauthorized")
	c.delete(systemSecrets+"/"+token.SecretName(), "").ok()
	refused(token.Bearer(), "Unauthorized")

	// In another namespace it is no token, whoever may write there.
	other, err := bootstraptoken.New()
	require.NoError(t, err)
	secret := bootstraptoken.ToSecret(other, bootstraptoken.Spec{Authentication: true, Groups: []string{bootstraptoken.ServerGroup}})
	secret.Namespace = "default"
	body, err := json.Marshal(secret)
	require.NoError(t, err)
	c.post("/api/v1/namespaces/default/secrets", string(body)).ok()
	refused(other.Bearer(), "Unauthorized")
}
