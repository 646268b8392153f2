package bootstraptoken

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Where tokens are, and what the keys of their Secrets are called (Kubernetes' documentation, "Authenticating with
// Bootstrap Tokens").
const (
	Namespace                    = metav1.NamespaceSystem
	Type       corev1.SecretType = corev1.SecretTypeBootstrapToken
	namePrefix                   = "bootstrap-token-"

	idKey             = "token-id"
	secretKey         = "token-secret"
	expirationKey     = "expiration"
	descriptionKey    = "description"
	groupsKey         = "auth-extra-groups"
	authenticationKey = "usage-bootstrap-authentication"
	signingKey        = "usage-bootstrap-signing"
)

// The users and groups that tokens stand for.
const (
	UserPrefix = "system:bootstrap:"
	// Group is that of all tokens: its members may ask for a node's certificate.
	Group = "system:bootstrappers"
	// ServerGroup is that of tokens with which servers join: its members get the cluster's keys.
	ServerGroup = "system:bootstrappers:kontiki:servers"
)

// groupPattern is what Kubernetes allows a token to add.
var groupPattern = regexp.MustCompile(`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`)

// Spec is what the cluster knows about a token.
type Spec struct {
	Description string
	Expires     time.Time // zero: never
	// Authentication: it may be shown to the API server. Signing: it may sign ConfigMap kube-public/cluster-info.
	Authentication, Signing bool
	// Groups are those beyond Group.
	Groups []string
}

// Over says whether the token has expired.
func (s Spec) Over(now time.Time) bool { return !s.Expires.IsZero() && !now.Before(s.Expires) }

// CheckGroup says what is wrong with a name of Spec.Groups.
func CheckGroup(name string) error {
	if !groupPattern.MatchString(name) {
		return fmt.Errorf("group %q does not match %s", name, groupPattern)
	}
	return nil
}

// SecretName is the name of the Secret that holds a token.
func (t Token) SecretName() string { return namePrefix + t.ID }

// ToSecret is the object that makes a token known to the cluster.
func ToSecret(t Token, s Spec) *corev1.Secret {
	data := map[string]string{idKey: t.ID, secretKey: t.Secret}
	set := func(key, value string) {
		if value != "" {
			data[key] = value
		}
	}
	flag := map[bool]string{true: "true"}
	set(descriptionKey, s.Description)
	set(authenticationKey, flag[s.Authentication])
	set(signingKey, flag[s.Signing])
	set(groupsKey, strings.Join(s.Groups, ","))
	if !s.Expires.IsZero() {
		set(expirationKey, s.Expires.UTC().Format(time.RFC3339))
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: t.SecretName()}, Type: Type, StringData: data}
}

// FromSecret is the reverse. The error is ErrSecret, and says what is wrong: a token whose expiration or groups cannot be
// read is good for nothing.
func FromSecret(secret *corev1.Secret) (Token, Spec, error) {
	text := func(key string) string { return string(secret.Data[key]) }
	fault := func(format string, args ...any) (Token, Spec, error) {
		return Token{}, Spec{}, fmt.Errorf("%w: %s: %s", ErrSecret, secret.Name, fmt.Sprintf(format, args...))
	}
	if secret.Type != Type || secret.Namespace != Namespace {
		return fault("its type or namespace is another")
	}
	t, err := Parse(text(idKey) + "." + text(secretKey))
	if err != nil || secret.Name != t.SecretName() {
		return fault("%s and %s do not make the token of this name", idKey, secretKey)
	}
	s := Spec{Description: text(descriptionKey), Authentication: text(authenticationKey) == "true", Signing: text(signingKey) == "true"}
	if value := text(expirationKey); value != "" {
		if s.Expires, err = time.Parse(time.RFC3339, value); err != nil {
			return fault("%s is not a time", expirationKey)
		}
	}
	for group := range strings.SplitSeq(text(groupsKey), ",") {
		if group == "" {
			continue
		}
		if err := CheckGroup(group); err != nil {
			return fault("%v", err)
		}
		s.Groups = append(s.Groups, group)
	}
	slices.Sort(s.Groups)
	return t, s, nil
}
