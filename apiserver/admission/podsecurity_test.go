package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// labelled is the namespace of the tests with labels of Pod Security, "enforce", "baseline", ….
func labelled(labels ...string) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: named("ns")}
	ns.Labels = map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		ns.Labels["pod-security.kubernetes.io/"+labels[i]] = labels[i+1]
	}
	return ns
}

// podSecurityOf judges a request, and returns what was told beside.
func podSecurityOf(t *testing.T, c *cluster, config string, r *Request) (warnings []string, annotations map[string]string, err error) {
	t.Helper()
	p, err := newPodSecurity(c, []byte(config))
	require.NoError(t, err)
	annotations = map[string]string{}
	r.Warn = func(text string) { warnings = append(warnings, text) }
	r.Annotate = func(key, value string) { annotations[key] = value }
	err = p.Validate(t.Context(), r)
	return warnings, annotations, err
}

func privileged() *corev1.Pod {
	pod := podOn("")
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	return pod
}

const privilegedFault = `privileged (container "c" must not set securityContext.privileged=true)`

func TestPodSecurityModes(t *testing.T) {
	c := &cluster{objects: []runtime.Object{labelled()}}
	_, _, err := podSecurityOf(t, c, "", write(privileged(), nil, ""))
	require.NoError(t, err, "nothing is asked of a namespace without labels")

	c.objects[0] = labelled("enforce", "baseline")
	_, told, err := podSecurityOf(t, c, "", write(privileged(), nil, ""))
	forbidden(t, err, `pods "p" is forbidden: violates PodSecurity "baseline:latest": `+privilegedFault)
	require.Equal(t, "baseline:latest", told["pod-security.kubernetes.io/enforce-policy"])
	_, _, err = podSecurityOf(t, c, "", write(podOn(""), nil, ""))
	require.NoError(t, err)
	debugged := podOn("")
	debugged.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "e", Image: "i", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
	}}}
	_, _, err = podSecurityOf(t, c, "", write(debugged, podOn(""), "ephemeralcontainers"))
	forbidden(t, err, "violates PodSecurity")

	c.objects[0] = labelled("warn", "baseline", "audit", "baseline")
	warnings, told, err := podSecurityOf(t, c, "", write(privileged(), nil, ""))
	require.NoError(t, err)
	require.Equal(t, []string{`would violate PodSecurity "baseline:latest": ` + privilegedFault}, warnings)
	require.Contains(t, told["pod-security.kubernetes.io/audit-violations"], privilegedFault)
}

func TestPodSecurityTellsOfTemplates(t *testing.T) {
	c := &cluster{objects: []runtime.Object{labelled("enforce", "baseline", "warn", "baseline")}}
	deployment := &appsv1.Deployment{ObjectMeta: inNS("d"), Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: privileged().Spec}}}
	warnings, _, err := podSecurityOf(t, c, "", write(deployment, nil, ""))
	require.NoError(t, err, "its pods will be refused")
	require.Equal(t, []string{`would violate PodSecurity "baseline:latest": ` + privilegedFault}, warnings)
}

func TestPodSecurityJudgesLabels(t *testing.T) {
	c := &cluster{objects: []runtime.Object{labelled(), privileged()}}
	_, _, err := podSecurityOf(t, c, "", write(labelled("enforce", "strict"), nil, ""))
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	warnings, _, err := podSecurityOf(t, c, "", write(labelled("enforce", "baseline"), labelled(), ""))
	require.NoError(t, err)
	require.Equal(t, []string{`existing pods in namespace "ns" violate the new PodSecurity enforce level "baseline:latest"`, "p: privileged"}, warnings)
}

func TestPodSecurityConfiguration(t *testing.T) {
	const config = `{"apiVersion":"pod-security.admission.config.k8s.io/v1","kind":"PodSecurityConfiguration",
		"defaults":{"enforce":"baseline"},"exemptions":{"usernames":["jane"],"namespaces":["kube-system"]}}`
	c := &cluster{objects: []runtime.Object{labelled()}}
	_, told, err := podSecurityOf(t, c, config, write(privileged(), nil, ""))
	require.NoError(t, err)
	require.Equal(t, "user", told["pod-security.kubernetes.io/exempt"])
	r := write(privileged(), nil, "")
	r.User.Username = "joe"
	_, _, err = podSecurityOf(t, c, config, r)
	forbidden(t, err, "violates PodSecurity")

	for _, wrong := range []string{"{", `{"kind":"PodSecurityConfiguration","apiVersion":"v1"}`,
		`{"apiVersion":"pod-security.admission.config.k8s.io/v1","kind":"PodSecurityConfiguration","defaults":{"enforce":"strict"}}`} {
		_, err := newPodSecurity(c, []byte(wrong))
		require.ErrorIs(t, err, ErrConfiguration)
	}
}
