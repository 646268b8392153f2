package registry

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// resourceFacts are what discovery says of a resource or subresource.
type resourceFacts struct {
	Kind       string `json:"kind"`
	GV         string `json:"gv,omitempty"` // of the kind, if it is another than the resource's
	Namespaced bool   `json:"namespaced,omitempty"`
	Verbs      string `json:"verbs"`
	Singular   string `json:"singular,omitempty"`
	Short      string `json:"short,omitempty"`
	Categories string `json:"categories,omitempty"`
	Hash       string `json:"hash,omitempty"` // of the group, version and kind it is stored as
}

// Every stable kind of Kubernetes 1.37 is a row with the names, verbs and subresources it has there.
// testdata/discovery.json is what kube-apiserver 1.37.2 answers for its stable versions, a line each.
func TestAllStableKinds(t *testing.T) {
	recorded, err := os.ReadFile("testdata/discovery.json")
	require.NoError(t, err)
	var want map[string]resourceFacts
	require.NoError(t, json.Unmarshal(recorded, &want))
	got := recordedFacts(Builtin(Options{}))
	for name, facts := range want {
		if reason := notYet[name]; reason != "" {
			require.NotContains(t, got, name, reason)
			continue
		}
		if storedOlder[name] {
			require.NotEqual(t, facts.Hash, got[name].Hash, name)
			facts.Hash = got[name].Hash
		}
		require.Equal(t, facts, got[name], name)
	}
	for name := range got {
		require.Contains(t, want, name, "Kubernetes has no such resource")
	}
}

// notYet are the resources that are left out, with the reason.
var notYet = map[string]string{}

// storedOlder are the kinds that Kubernetes still stores in a beta version, so that the release before can be
// gone back to. There is no such release here.
var storedOlder = map[string]bool{
	"certificates.k8s.io/v1 clustertrustbundles":          true,
	"certificates.k8s.io/v1 podcertificaterequests":       true,
	"resource.k8s.io/v1 devicetaintrules":                 true,
	"storagemigration.k8s.io/v1 storageversionmigrations": true,
}

func recordedFacts(table *Table) map[string]resourceFacts {
	out := map[string]resourceFacts{}
	for _, r := range table.Resources() {
		key := r.GroupVersion().String() + " " + r.Resource
		verbs := r.Verbs
		if verbs == nil {
			verbs = strings.Fields("create delete deletecollection get list patch update watch")
		}
		facts := resourceFacts{
			Kind: r.Kind, Namespaced: r.Namespaced, Singular: r.Singular, Verbs: strings.Join(verbs, " "),
			Short: strings.Join(r.ShortNames, " "), Categories: strings.Join(r.Categories, " "),
		}
		if r.Answers == nil {
			facts.Hash = storedAs(r)
		}
		out[key] = facts
		for _, s := range r.Subresources {
			facts := resourceFacts{Kind: s.Kind.Kind, Namespaced: r.Namespaced, Verbs: strings.Join(s.Verbs, " ")}
			if gv := s.Kind.GroupVersion(); gv != r.GroupVersion() {
				facts.GV = gv.String()
			}
			out[key+"/"+s.Name] = facts
		}
	}
	return out
}

func storedAs(r *Resource) string {
	stored := r
	if r.Hub != nil {
		stored = r.Hub
	}
	sum := sha256.Sum256([]byte(stored.Group + "/" + stored.Version + "/" + stored.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}
