package tokens

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
)

// keyID is the digest of the public key, as Kubernetes names its keys.
func keyID(key *ecdsa.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(digest[:]), nil
}

// jsonWebKey is a public key of RFC 7517 (EC: RFC 7518, 6.2.1).
type jsonWebKey struct {
	Use       string `json:"use"`
	Type      string `json:"kty"`
	ID        string `json:"kid"`
	Curve     string `json:"crv"`
	Algorithm string `json:"alg"`
	X         string `json:"x"`
	Y         string `json:"y"`
}

// KeySet is the JSON Web Key Set of all keys that verify tokens.
func (i *Issuer) KeySet() ([]byte, error) {
	public, keys := i.keys.Load().public, []jsonWebKey{}
	for _, id := range slices.Sorted(maps.Keys(public)) {
		point, err := public[id].Bytes() // 4, X, Y
		if err != nil {
			return nil, err
		}
		half := (len(point) - 1) / 2
		keys = append(keys, jsonWebKey{Use: "sig", Type: "EC", ID: id, Curve: "P-256", Algorithm: "ES256",
			X: base64.RawURLEncoding.EncodeToString(point[1 : 1+half]), Y: base64.RawURLEncoding.EncodeToString(point[1+half:])})
	}
	return json.Marshal(map[string]any{"keys": keys})
}

// Discovery is the OpenID provider configuration of this issuer, whose keys are at keysURL.
func (i *Issuer) Discovery(keysURL string) ([]byte, error) {
	return json.Marshal(struct {
		Issuer     string   `json:"issuer"`
		KeysURL    string   `json:"jwks_uri"`
		Responses  []string `json:"response_types_supported"`
		Subjects   []string `json:"subject_types_supported"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}{i.config.URL, keysURL, []string{"id_token"}, []string{"public"}, []string{"ES256"}})
}
