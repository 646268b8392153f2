package policy

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"kontiki/internal/policypeers"
)

// denyAll isolates pods of a namespace in both directions.
func denyAll(namespace string, pods *metav1.LabelSelector) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deny-all", UID: types.UID("deny-" + namespace), Generation: 1},
		Spec:       networkingv1.NetworkPolicySpec{PodSelector: *pods, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}},
	}
}

// running is an enforcer of node1 that follows an API.
type running struct {
	*Enforcer
	answer func() // has the API server answer
	stop   func()
}

// run starts an enforcer on node1. Until answer is called, its API server is away.
func (w *world) run(client *fake.Clientset, ran map[types.UID][]netip.Addr) *running {
	factory := informers.NewSharedInformerFactory(client, 0)
	r := &running{}
	var err error
	w.spaces["node1"].In(func() {
		r.Enforcer, err = New(Config{
			Pods: factory.Core().V1().Pods().Informer(), Informers: factory, Log: slog.New(slog.NewTextHandler(w.t.Output(), nil)),
			Report:  w.reported,
			Running: func(context.Context) (map[types.UID][]netip.Addr, error) { return ran, nil },
		})
	})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	r.answer = func() { factory.Start(ctx.Done()) }
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.spaces["node1"].In(func() { _ = r.Run(ctx) })
	}()
	r.stop = func() {
		cancel()
		<-ended
		factory.Shutdown()
	}
	w.t.Cleanup(r.stop)
	return r
}

// eventuallyJudged waits until the model's word is the kernel's on some probes.
func (w *world) eventuallyJudged(step string, policies model, probes []probe) {
	w.t.Helper()
	try := 0
	w.await(func() bool {
		try++
		return w.agrees(fmt.Sprint(step, "/", try), policies, probes)
	}, func() string { return step + ": rules are not what the policies say" })
}

// agrees says whether UDP probes arrive exactly where the model allows it.
func (w *world) agrees(step string, policies model, probes []probe) bool {
	for _, p := range probes {
		w.send(p.from.name, p.family, p.target(), step+"/"+strings.ReplaceAll(p.String(), " ", "/"))
	}
	w.fences(step)
	return !slices.ContainsFunc(probes, func(p probe) bool {
		return w.noted(w.arrived, step+"/"+strings.ReplaceAll(p.String(), " ", "/")) != policies.allows(p.from, p.to, p.family, corev1.ProtocolUDP, p.port)
	})
}

// about are the UDP probes to and from a pod of node1.
func (w *world) about(name string) (probes []probe) {
	for _, p := range w.allProbes() {
		if p.network == "udp" && p.from != p.to && (p.from.name == name || p.to.name == name) {
			probes = append(probes, p)
		}
	}
	return probes
}

// A pod that starts while policies are not known yet is closed to all but its node; one that ran before is left as it is.
// When they are known, both are bound by them, and by nothing else.
func TestClosedUntilPoliciesAreKnown(t *testing.T) {
	w := newWorld(t)
	web, db := w.hosts["web1"], w.hosts["db1"]
	client := fake.NewClientset(web.pod, db.pod)
	r := w.run(client, map[types.UID][]netip.Addr{db.pod.UID: parsed(db.addresses)})
	for range 2 { // asking again costs nothing
		require.NoError(t, r.Protect(t.Context(), web.pod.UID, parsed(web.addresses)))
		require.NoError(t, r.Protect(t.Context(), db.pod.UID, parsed(db.addresses)))
	}
	shut := model{denyAll("shop", webPods)} // as if
	w.judge("closed", shut, append(w.about("web1"), w.about("db1")...))

	r.answer()
	w.eventuallyJudged("known", nil, append(w.about("web1"), w.about("db1")...))
	policy := denyAll("back", dbPods)
	_, err := client.NetworkingV1().NetworkPolicies("back").Create(t.Context(), policy, metav1.CreateOptions{})
	require.NoError(t, err)
	w.eventuallyJudged("bound", model{policy}, append(w.about("web1"), w.about("db1")...)[:8])
}

// A pod is bound when Protect returns, also by an address that another pod had; what is forgotten binds nobody.
func TestProtect(t *testing.T) {
	w := newWorld(t)
	web, db := w.hosts["web1"], w.hosts["db1"]
	client := fake.NewClientset(web.pod, db.pod, denyAll("shop", webPods))
	r := w.run(client, nil)
	r.answer()
	require.NoError(t, r.Protect(t.Context(), web.pod.UID, parsed(web.addresses)))
	w.await(func() bool { return strings.Contains(w.listed("node1"), "jump in6/shop/deny-all") }, func() string { return w.listed("node1") })
	w.judge("bound", model{denyAll("shop", webPods)}, w.about("web1")) // by its policy: a pod that is closed looks the same
	require.NoError(t, r.Protect(t.Context(), db.pod.UID, parsed(db.addresses)))
	w.judge("another pod is not bound", model{denyAll("shop", webPods)}, w.about("db1"))

	// The pods change places: as if each had been stopped, and started anew with the other's address.
	require.NoError(t, r.Protect(t.Context(), db.pod.UID, parsed(web.addresses)))
	require.NoError(t, r.Protect(t.Context(), web.pod.UID, parsed(db.addresses)))
	web.addresses, db.addresses = db.addresses, web.addresses
	web.name, db.name = db.name, web.name // whose sockets have them
	w.judge("addresses have changed hands", model{denyAll("shop", webPods)}, append(w.about("web1"), w.about("db1")...))

	require.NoError(t, r.Protect(t.Context(), "stranger", parsed([]string{"10.244.1.99"})))
	require.Contains(t, w.listed("node1"), "10.244.1.99 : goto closed", "a pod that has no object is closed")
	for _, uid := range []types.UID{web.pod.UID, db.pod.UID, "stranger"} {
		r.Forget(uid)
	}
	w.await(func() bool { return !strings.Contains(w.listed("node1"), "10.244.1.") }, func() string { return w.listed("node1") })
}

// listed is the rules of a node, all of which are the package's.
func (w *world) listed(node string) (text string) {
	w.t.Helper()
	var err error
	w.spaces[node].In(func() {
		var out []byte
		out, err = exec.Command("nft", "list", "ruleset", "inet").CombinedOutput()
		text = string(out)
	})
	require.NoError(w.t, err, text)
	return text
}

// A restarted agent finds the rules, leaves them until it knows better, and makes the same. So does one whose rules were flushed. Remove leaves nothing.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	web := w.hosts["web1"]
	policy := onePolicy("shop", all, networkingv1.PolicyTypeIngress, true, somePeers[5], somePorts[4])
	policy.Name, policy.UID, policy.Generation = "p", "u", 1
	client := fake.NewClientset(web.pod, policy)
	r := w.run(client, nil)
	r.answer()
	require.NoError(t, r.Protect(t.Context(), web.pod.UID, parsed(web.addresses)))
	w.await(func() bool { return strings.Contains(w.listed("node1"), "jump in6/shop/p") }, func() string { return w.listed("node1") })
	before := sortedWords(w.listed("node1"))
	w.spaces["node1"].Run("nft flush ruleset")
	w.await(func() bool { return slices.Equal(before, sortedWords(w.listed("node1"))) }, func() string { return w.listed("node1") })
	r.stop()
	require.Equal(t, before, sortedWords(w.listed("node1")))

	again := w.run(client, map[types.UID][]netip.Addr{web.pod.UID: parsed(web.addresses)})
	require.NoError(t, again.Protect(t.Context(), web.pod.UID, parsed(web.addresses)))
	require.Equal(t, before, sortedWords(w.listed("node1")))
	again.answer()
	require.NoError(t, again.Protect(t.Context(), "another", parsed([]string{"10.244.1.99"}))) // comes after, or with, all
	w.await(func() bool { return strings.Contains(w.listed("node1"), "10.244.1.99") }, func() string { return w.listed("node1") })
	again.Forget("another")
	w.await(func() bool { return slices.Equal(before, sortedWords(w.listed("node1"))) }, func() string { return w.listed("node1") })

	again.stop()
	var err error
	w.spaces["node1"].In(func() {
		if err = Remove(t.Context()); err == nil {
			err = Remove(t.Context()) // of nothing
		}
	})
	require.NoError(t, err)
	w.spaces["node1"].In(func() { err = exec.Command("nft", "list", "table", "inet", tableName).Run() })
	require.Error(t, err, "the table is gone")
}

// sortedWords are what a table holds, in whatever order.
func sortedWords(text string) []string {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,\n\t{}", r) })
	slices.Sort(words)
	return words
}

// A policy that comes cuts a TCP stream in both directions, and one that goes lets it live again.
func TestOpenFlows(t *testing.T) {
	w := newWorld(t)
	w.enforce(nil)
	var listener net.Listener
	var err error
	w.spaces["db2"].In(func() { listener, err = net.Listen("tcp", "10.244.2.12:7000") })
	require.NoError(t, err)
	defer listener.Close()
	var client net.Conn
	w.spaces["web1"].In(func() { client, err = net.DialTimeout("tcp", "10.244.2.12:7000", patience) })
	require.NoError(t, err)
	defer client.Close()
	server, err := listener.Accept()
	require.NoError(t, err)
	defer server.Close()
	ends := []net.Conn{client, server}
	heard := []string{"", ""}
	for i, conn := range ends {
		require.NoError(t, conn.SetDeadline(time.Now().Add(2*patience)))
		go func() {
			buffer := make([]byte, 100)
			for {
				n, err := conn.Read(buffer)
				if err != nil {
					return
				}
				w.mu.Lock()
				heard[i] += string(buffer[:n])
				w.mu.Unlock()
			}
		}()
	}
	say := func(word string) {
		for _, conn := range ends {
			_, err := conn.Write([]byte(word))
			require.NoError(t, err)
		}
	}
	hears := func(want string) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return heard[0] == want && heard[1] == want
	}
	say("before ")
	w.await(func() bool { return hears("before ") }, func() string { return fmt.Sprint(heard) })
	for i, policies := range []model{{denyAll("shop", webPods)}, {onePolicy("shop", webPods, networkingv1.PolicyTypeEgress, false, nil, nil)},
		{onePolicy("shop", dbPods, networkingv1.PolicyTypeIngress, true, nil, somePorts[1])}} {
		policies[0].Name, policies[0].UID = "p", types.UID(fmt.Sprint(i))
		w.enforce(policies)
		said := strings.Repeat("before during ", i) + "before "
		say("during ")
		w.fences(fmt.Sprint("cut ", i))
		require.True(t, hears(said), "%v: a word has come through %s", heard, describe(policies))
		w.enforce(nil)
		said += "during "
		w.await(func() bool { return hears(said) }, func() string { return fmt.Sprint(heard) })
		say("before ")
		said += "before "
		w.await(func() bool { return hears(said) }, func() string { return fmt.Sprint(heard) })
	}
}

// Flows to a Service are judged by the pods at their ends, whatever address stands between; a pod reaches itself through its
// Service whatever its policies say.
func TestBehindServices(t *testing.T) {
	w := newWorld(t)
	w.spaces["node1"].Run("nft add table ip services",
		"nft add chain ip services pre { type nat hook prerouting priority dstnat ; }",
		"nft add rule ip services pre ip daddr 10.96.0.20 udp dport 53 dnat to 10.244.2.12:80",
		"nft add rule ip services pre ip daddr 10.96.0.21 udp dport 53 dnat to 10.244.1.11:80",
		"nft add chain ip services post { type nat hook postrouting priority srcnat ; }",
		"nft add rule ip services post ip saddr 10.244.1.11 ip daddr 10.244.1.11 masquerade")
	allowed := onePolicy("shop", all, networkingv1.PolicyTypeEgress, true, somePeers[1], somePorts[1]) // to db pods at UDP 80
	allowed.Name, allowed.UID = "p", "1"
	back := onePolicy("shop", dbPods, networkingv1.PolicyTypeIngress, true, []networkingv1.NetworkPolicyPeer{{PodSelector: webPods}}, nil)
	back.Name, back.UID = "q", "2"
	denied := onePolicy("shop", all, networkingv1.PolicyTypeEgress, true, somePeers[1], []networkingv1.NetworkPolicyPort{port(corev1.ProtocolUDP, "53", 0)})
	denied.Name, denied.UID = "p", "3"
	for i, c := range []struct {
		policies model
		to       string
		want     bool
	}{
		{model{allowed, back}, "10.96.0.20:53", true},
		{model{denied, back}, "10.96.0.20:53", false}, // the Service's port is not the pod's
		{model{denyAll("shop", webPods)}, "10.96.0.20:53", false},
		{model{denyAll("shop", webPods)}, "10.96.0.21:53", true}, // itself
	} {
		w.enforce(c.policies)
		id := fmt.Sprint("service/", i)
		w.send("web1", 0, c.to, id)
		if c.want {
			w.await(func() bool { return w.noted(w.echoed, id) }, func() string { return "no answer from " + c.to + describe(c.policies) })
		}
		w.fences(id)
		require.Equal(t, c.want, w.noted(w.arrived, id), "%s %s", c.to, describe(c.policies))
	}
}

// When labels of pods change, so do the policies that bind them and the peers that they are.
func TestLabelsChange(t *testing.T) {
	w := newWorld(t)
	policy := onePolicy("shop", webPods, networkingv1.PolicyTypeIngress, true, []networkingv1.NetworkPolicyPeer{{NamespaceSelector: teamB, PodSelector: webPods}}, nil)
	policy.Name, policy.UID, policy.Generation = "p", "u", 1
	probes := w.allProbes()
	for i, labels := range []map[string]string{{"web1": "web", "web2": "web"}, {"web1": "web", "web2": "db"}, {"web1": "db", "web2": "db"}, {"web1": "web", "web2": "web"}} {
		for name, app := range labels {
			h := w.hosts[name]
			h.pod = h.pod.DeepCopy()
			h.pod.Labels["app"] = app
			require.NoError(t, w.nodes[h.node].pods.Update(h.pod))
			w.sync(h.node, &batch{pods: map[types.UID]bool{h.pod.UID: true}, policies: map[string]bool{}})
		}
		w.enforce(model{policy})
		w.judge(fmt.Sprint("labels ", i), model{policy}, probes)
	}
}

// Policies that bind no pod of the node, and peers of them, leave nothing on it.
func TestNothingForOthers(t *testing.T) {
	w := newWorld(t)
	w.enforce(nil)
	empty := sortedWords(w.listed("node2"))
	policy := onePolicy("shop", webPods, networkingv1.PolicyTypeIngress, true, somePeers[3], nil) // web1 alone
	policy.Name, policy.UID = "p", "u"
	w.enforce(model{policy})
	require.Equal(t, empty, sortedWords(w.listed("node2")))
	require.Contains(t, w.listed("node1"), "peers4/shop/p/"+policypeers.Of(policy)[0].Key)
	w.enforce(nil)
	w.sync("node1", &batch{pods: map[types.UID]bool{"uid-web1": true, "uid-db1": true}, policies: map[string]bool{}})
	require.Equal(t, empty, sortedWords(w.listed("node1")))
}
