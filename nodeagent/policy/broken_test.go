package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// brokenNFT puts a program before the machine's nft that refuses its work until mend is called.
func brokenNFT(t *testing.T) (mend func()) {
	real, err := exec.LookPath("nft")
	if err != nil {
		t.Skip("needs nft")
	}
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	require.NoError(t, os.WriteFile(broken, nil, 0o600))
	script := "#!/bin/sh\n[ -e " + broken + " ] && [ \"$1\" != --version ] && { echo 'Operation not permitted' >&2; exit 1; }\nexec " + real + " \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nft"), []byte(script), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() { require.NoError(t, os.Remove(broken)) }
}

// While rules cannot be written a pod that a policy selects does not start, and one that none selects does. It is told; and when
// they can be written they are, without a new start of the agent.
func TestBrokenNFT(t *testing.T) {
	w := newWorld(t)
	mend := brokenNFT(t)
	web, db := w.hosts["web1"], w.hosts["db1"]
	policies := model{denyAll("shop", webPods)}
	client := fake.NewClientset(web.pod, db.pod, policies[0])
	var mu sync.Mutex // guards told
	var told []error
	w.reported = func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err)
	}
	reports := func() []error {
		mu.Lock()
		defer mu.Unlock()
		return told
	}
	r := w.run(client, nil)
	require.ErrorIs(t, r.Protect(t.Context(), db.pod.UID, parsed(db.addresses)), ErrNotWritten, "whether a policy selects it is not known yet")
	r.answer()
	w.await(func() bool { return r.Protect(t.Context(), db.pod.UID, parsed(db.addresses)) == nil }, func() string { return "no policy selects it" })
	require.ErrorIs(t, r.Protect(t.Context(), web.pod.UID, parsed(web.addresses)), ErrNotWritten)
	require.ErrorContains(t, reports()[0], "Operation not permitted")
	require.Len(t, reports(), 1, "it is told once: %v", reports())
	mend()
	w.await(func() bool { return r.Protect(t.Context(), web.pod.UID, parsed(web.addresses)) == nil }, func() string { return "still not" })
	w.judge("bound", policies, w.about("web1"))
	w.await(func() bool { return len(reports()) == 2 }, func() string { return "not told" })
	require.NoError(t, reports()[1])
}

// When nft works again, rules come without that a pod asks for them.
func TestMendedNFT(t *testing.T) {
	w := newWorld(t)
	mend := brokenNFT(t)
	web := w.hosts["web1"]
	policy := onePolicy("shop", all, networkingv1.PolicyTypeIngress, true, nil, nil)
	policy.Name, policy.UID, policy.Generation = "p", "u", 1
	r := w.run(fake.NewClientset(web.pod, policy), nil)
	r.answer()
	require.ErrorIs(t, r.Protect(t.Context(), web.pod.UID, parsed(web.addresses)), ErrNotWritten)
	mend()
	w.await(func() bool { return strings.Contains(w.listed("node1"), "jump in4/shop/p") }, func() string { return w.listed("node1") })
}
