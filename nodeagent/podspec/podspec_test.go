package podspec

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func ptr[T any](v T) *T { return &v }

// sources is the ConfigMaps and Secrets of a test, by name.
type sources struct {
	maps    map[string]map[string]string
	secrets map[string]map[string][]byte
}

func (s sources) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	data, ok := s.maps[name]
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), name)
	}
	return &corev1.ConfigMap{Data: data}, nil
}

func (s sources) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	data, ok := s.secrets[name]
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
	}
	return &corev1.Secret{Data: data}, nil
}

func TestExpand(t *testing.T) {
	vars := map[string]string{"A": "one", "B": "$(A)", "EMPTY": ""}
	lookup := func(n string) (string, bool) { v, ok := vars[n]; return v, ok }
	for in, want := range map[string]string{
		"":              "",
		"plain":         "plain",
		"$(A)":          "one",
		"x$(A)y$(A)":    "xoneyone",
		"$$(A)":         "$(A)",
		"$$$(A)":        "$one",
		"$$$$(A)":       "$$(A)",
		"$(B)":          "$(A)", // values are not expanded again
		"$(NOPE)":       "$(NOPE)",
		"$(EMPTY)":      "",
		"$(A":           "$(A",
		"$":             "$",
		"a$":            "a$",
		"$A":            "$A",
		"$()":           "$()",
		"$((A))":        "$((A))",
		"$(A)$(NOPE)$$": "one$(NOPE)$",
	} {
		require.Equal(t, want, Expand(in, lookup), in)
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("$(A)$$(B)$")
	f.Fuzz(func(t *testing.T, s string) {
		none := Expand(s, func(string) (string, bool) { return "", false })
		if !strings.Contains(s, "$$") {
			require.Equal(t, s, none, "unknown references stay")
		}
	})
}

func TestEnvironment(t *testing.T) {
	src := sources{
		maps:    map[string]map[string]string{"cm": {"k": "v", "HOST": "from-map"}},
		secrets: map[string]map[string][]byte{"s": {"pw": []byte("secret")}},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Labels: map[string]string{"app": "x"}}}
	ref := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	c := corev1.Container{
		EnvFrom: []corev1.EnvFromSource{
			{Prefix: "CM_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("cm")}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("gone"), Optional: ptr(true)}},
		},
		Env: []corev1.EnvVar{
			{Name: "A", Value: "1"},
			{Name: "B", Value: "$(A)+$(SVC_HOST)+$(LATER)"},
			{Name: "LATER", Value: "x"},
			{Name: "PW", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("s"), Key: "pw"}}},
			{Name: "OPT", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("cm"), Key: "no", Optional: ptr(true)}}},
			{Name: "APP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['app']"}}},
			{Name: "A", Value: "2"},
		},
	}
	env, err := newEnvironment(t.Context(), pod, &c, Facts{}, map[string]string{"SVC_HOST": "10.0.0.1", "A": "link"}, src)
	require.NoError(t, err)
	var got []string
	for _, kv := range env.list() {
		got = append(got, kv.Key+"="+string(kv.Value))
	}
	require.Equal(t, []string{"CM_HOST=from-map", "CM_k=v", "A=2", "B=1+10.0.0.1+$(LATER)", "LATER=x", "PW=secret", "APP=x", "SVC_HOST=10.0.0.1"}, got)
}

func TestEnvironmentErrors(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
	src := sources{maps: map[string]map[string]string{"cm": {}}}
	key := func(name string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "k"}}
	}
	for want, from := range map[string]*corev1.EnvVarSource{
		`configmaps "none" not found`:                key("none"),
		"couldn't find key k in ConfigMap ns/cm":     key("cm"),
		`unsupported field path: "status.startTime"`: {FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.startTime"}},
	} {
		c := corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: from}}}
		_, err := newEnvironment(t.Context(), pod, &c, Facts{}, nil, src)
		require.EqualError(t, err, want)
	}
}

func TestFieldRef(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u",
		Labels: map[string]string{"b": "2", "a": "1"}, Annotations: map[string]string{"x/y": "z"}},
		Spec: corev1.PodSpec{NodeName: "n", ServiceAccountName: "sa"}}
	facts := Facts{PodIPs: []string{"10.1.1.1", "fd00::1"}, HostIPs: []string{"192.0.2.1"}}
	for path, want := range map[string]string{
		"metadata.name": "p", "metadata.namespace": "ns", "metadata.uid": "u", "metadata.labels": "a=\"1\"\nb=\"2\"",
		"metadata.labels['a']": "1", "metadata.labels['none']": "", "metadata.annotations['x/y']": "z",
		"spec.nodeName": "n", "spec.serviceAccountName": "sa", "status.hostIP": "192.0.2.1",
		"status.podIP": "10.1.1.1", "status.podIPs": "10.1.1.1,fd00::1",
	} {
		got, err := FieldRef(pod, facts, path)
		require.NoError(t, err)
		require.Equal(t, want, got, path)
	}
	_, err := FieldRef(pod, facts, "spec.volumes['a']")
	require.ErrorIs(t, err, ErrFieldPath)
}

func list(cpu, memory string) corev1.ResourceList {
	l := corev1.ResourceList{}
	if cpu != "" {
		l[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		l[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return l
}

func TestResourceFieldRef(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c",
		Resources: corev1.ResourceRequirements{Requests: list("250m", "100Mi"), Limits: list("", "150Mi")}}}}}
	facts := Facts{Allocatable: list("4", "8Gi")}
	for _, c := range []struct{ resource, divisor, want string }{
		{"requests.cpu", "1m", "250"},
		{"requests.cpu", "0", "1"},
		{"limits.cpu", "1", "4"},
		{"limits.memory", "1Mi", "150"},
		{"limits.memory", "100Mi", "2"},
		{"requests.memory", "1", "104857600"},
	} {
		got, err := ResourceFieldRef(pod, facts, "c", &corev1.ResourceFieldSelector{Resource: c.resource, Divisor: resource.MustParse(c.divisor)})
		require.NoError(t, err)
		require.Equal(t, c.want, got, c)
	}
}

func TestQOSAndCgroups(t *testing.T) {
	for _, c := range []struct {
		requests, limits corev1.ResourceList
		class            corev1.PodQOSClass
		shares, quota    int64
		oom              int64
	}{
		{nil, nil, corev1.PodQOSBestEffort, 2, 0, 1000},
		{list("1", "1Gi"), list("1", "1Gi"), corev1.PodQOSGuaranteed, 1024, 100_000, -997},
		{nil, list("500m", "1Gi"), corev1.PodQOSGuaranteed, 512, 50_000, -997},
		{list("100m", "2Gi"), nil, corev1.PodQOSBurstable, 102, 0, 500},
		{list("1m", "1Ki"), list("1m", ""), corev1.PodQOSBurstable, 2, 1000, 999},
		{list("", "4Gi"), nil, corev1.PodQOSBurstable, 2, 0, 3},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: c.requests, Limits: c.limits}}}}}
		require.Equal(t, c.class, QOSClass(pod))
		r := ContainerResources(pod, &pod.Spec.Containers[0], 4<<30)
		require.Equal(t, c.shares, r.CpuShares)
		require.Equal(t, c.quota, r.CpuQuota)
		require.Equal(t, c.oom, r.OomScoreAdj)
	}
}

func TestSecurityContext(t *testing.T) {
	root := int64(0)
	pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{
		RunAsUser: ptr(int64(1000)), FSGroup: ptr(int64(7)), SupplementalGroups: []int64{8},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}}}
	c := &corev1.Container{SecurityContext: &corev1.SecurityContext{RunAsUser: ptr(int64(2000)), AllowPrivilegeEscalation: ptr(false)}}
	got, err := securityContext(pod, c, ImageUser{})
	require.NoError(t, err)
	require.Equal(t, int64(2000), got.RunAsUser.Value)
	require.Equal(t, []int64{8, 7}, got.SupplementalGroups)
	require.True(t, got.NoNewPrivs)
	require.Equal(t, runtimeapi.SecurityProfile_RuntimeDefault, got.Seccomp.ProfileType)
	require.Contains(t, got.MaskedPaths, "/proc/kcore")

	c.SecurityContext.Privileged = ptr(true)
	got, err = securityContext(pod, c, ImageUser{})
	require.NoError(t, err)
	require.Empty(t, got.MaskedPaths)

	pod = &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr(true)}}}
	for name, c := range map[string]struct {
		uid  *int64
		user ImageUser
		ok   bool
	}{
		"image says nothing":   {nil, ImageUser{}, false},
		"image says root":      {nil, ImageUser{UID: &root}, false},
		"image says a number":  {nil, ImageUser{UID: ptr(int64(5))}, true},
		"image says a name":    {nil, ImageUser{Name: "www"}, false},
		"pod says root":        {&root, ImageUser{UID: ptr(int64(5))}, false},
		"pod says another uid": {ptr(int64(9)), ImageUser{}, true},
	} {
		_, err := securityContext(pod, &corev1.Container{SecurityContext: &corev1.SecurityContext{RunAsUser: c.uid}}, c.user)
		if c.ok {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, ErrRunAsRoot, name)
		}
	}
}

func TestDNS(t *testing.T) {
	in := DNSInput{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local",
		Host: ParseResolvConf("# host\nnameserver 192.0.2.53\nsearch example.com\noptions edns0 ndots:1\n")}
	pod := func(policy corev1.DNSPolicy, hostNetwork bool) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: corev1.PodSpec{DNSPolicy: policy, HostNetwork: hostNetwork}}
	}
	got := DNS(pod(corev1.DNSClusterFirst, false), in)
	require.Equal(t, []string{"10.96.0.10"}, got.Servers)
	require.Equal(t, []string{"ns.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.com"}, got.Searches)
	require.Equal(t, []string{"ndots:5"}, got.Options)
	require.Equal(t, []string{"192.0.2.53"}, DNS(pod(corev1.DNSClusterFirst, true), in).Servers)
	require.Equal(t, []string{"10.96.0.10"}, DNS(pod(corev1.DNSClusterFirstWithHostNet, true), in).Servers)
	require.Equal(t, []string{"192.0.2.53"}, DNS(pod(corev1.DNSDefault, false), in).Servers)

	custom := pod(corev1.DNSNone, false)
	custom.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"1.1.1.1", "1.1.1.1"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: ptr("2")}, {Name: "debug"}}}
	got = DNS(custom, in)
	require.Equal(t, []string{"1.1.1.1"}, got.Servers)
	require.Equal(t, []string{"ndots:2", "debug"}, got.Options)

	in.ClusterDNS = nil
	require.Equal(t, []string{"192.0.2.53"}, DNS(pod(corev1.DNSClusterFirst, false), in).Servers, "no DNS service: the host's")
}

func TestHostnameAndHosts(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}, Spec: corev1.PodSpec{Hostname: "h", Subdomain: "sub",
		HostAliases: []corev1.HostAlias{{IP: "1.2.3.4", Hostnames: []string{"a", "b"}}}}}
	text := HostsFile(pod, []string{"10.0.0.2"}, "cluster.local", "ignored")
	require.Contains(t, text, "10.0.0.2\th.sub.ns.svc.cluster.local\th\n")
	require.Contains(t, text, "1.2.3.4\ta\tb\n")
	require.NotContains(t, text, "ignored")

	long := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", 62) + "-x"}}
	name, _ := Hostname(long, "")
	require.Equal(t, strings.Repeat("a", 62), name)

	pod.Spec.HostNetwork = true
	require.Contains(t, HostsFile(pod, nil, "cluster.local", "192.0.2.9 gateway"), "192.0.2.9 gateway\n")
}

func TestServiceLinks(t *testing.T) {
	service := func(ns, name, ip string, ports ...corev1.ServicePort) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: ports}}
	}
	services := []*corev1.Service{
		service("default", "kubernetes", "10.96.0.1", corev1.ServicePort{Name: "https", Port: 443, Protocol: "TCP"}),
		service("ns", "my-db", "10.96.0.7", corev1.ServicePort{Port: 5432, Protocol: "TCP"}),
		service("ns", "headless", "None", corev1.ServicePort{Port: 1}),
		service("other", "x", "10.96.0.8", corev1.ServicePort{Port: 1}),
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
	got := ServiceLinks(pod, services)
	require.Equal(t, "10.96.0.1", got["KUBERNETES_SERVICE_HOST"])
	require.Equal(t, "443", got["KUBERNETES_SERVICE_PORT_HTTPS"])
	require.Equal(t, "tcp://10.96.0.7:5432", got["MY_DB_PORT_5432_TCP"])
	require.Len(t, got, 8+7, fmt.Sprint(got))
	pod.Spec.EnableServiceLinks = ptr(false)
	require.Len(t, ServiceLinks(pod, services), 8)
}
