package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

const podsPath = "/api/v1/namespaces/default/pods"

// A pod gets its account, a volume with its token, and the account's pull secrets.
func TestPodsGetTheirAccount(t *testing.T) {
	cluster := testcluster.StartWithAccounts(t)
	c := clientFor(t, cluster.REST(pki.Admin))
	const pod = `{"metadata":{"generateName":"p-"},"spec":{"containers":[{"name":"c","image":"i"}]`
	c.post(podsPath, pod+`}}`).fails(403, metav1.StatusReasonForbidden, `error looking up service account default/default: serviceaccounts "default" not found`)
	c.post(accounts, `{"metadata":{"name":"default"},"imagePullSecrets":[{"name":"registry"}]}`).ok()
	got := decoded[corev1.Pod](c.post(podsPath, pod+`}}`).ok())
	require.Equal(t, "default", got.Spec.ServiceAccountName)
	require.Equal(t, []corev1.LocalObjectReference{{Name: "registry"}}, got.Spec.ImagePullSecrets)
	require.Len(t, got.Spec.Volumes, 1)
	require.Regexp(t, `^kube-api-access-\w{5}$`, got.Spec.Volumes[0].Name)
	require.Len(t, got.Spec.Volumes[0].Projected.Sources, 3)
	require.Equal(t, []corev1.VolumeMount{{Name: got.Spec.Volumes[0].Name, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}, got.Spec.Containers[0].VolumeMounts)

	// The pod's word, then the account's.
	require.Empty(t, decoded[corev1.Pod](c.post(podsPath, pod+`,"automountServiceAccountToken":false}}`).ok()).Spec.Volumes)
	c.patch(accounts+"/default", mergePatch, `{"automountServiceAccountToken":false}`).ok()
	require.Empty(t, decoded[corev1.Pod](c.post(podsPath, pod+`}}`).ok()).Spec.Volumes)
	require.NotEmpty(t, decoded[corev1.Pod](c.post(podsPath, pod+`,"automountServiceAccountToken":true}}`).ok()).Spec.Volumes)
}

// An account can say that its pods use no secrets but those that it lists, whichever way.
func TestPodsOfAnAccountWithMountableSecrets(t *testing.T) {
	cluster := testcluster.StartWithAccounts(t)
	c := clientFor(t, cluster.REST(pki.Admin))
	c.post(accounts, `{"metadata":{"name":"default","annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}},
		"automountServiceAccountToken":false,"secrets":[{"name":"mine"}],"imagePullSecrets":[{"name":"registry"}]}`).ok()
	pod := func(container, spec string) answer {
		return c.post(podsPath, `{"metadata":{"generateName":"p-"},"spec":{"containers":[{"name":"c","image":"i"`+container+`}]`+spec+`}}`)
	}
	pod(`,"envFrom":[{"secretRef":{"name":"mine"}}]`, `,"volumes":[{"name":"v","secret":{"secretName":"mine"}}]`).ok()
	const because = " is not allowed because service account default does not reference that "
	for _, wrong := range []struct{ container, spec, message string }{
		{"", `,"volumes":[{"name":"v","secret":{"secretName":"s"}}]`, `volume with secret.secretName="s"` + because + "secret"},
		{`,"env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]`, "", `container c with envVar E referencing secret.secretName="s"` + because + "secret"},
		{`,"envFrom":[{"secretRef":{"name":"s"}}]`, "", `container c with envFrom referencing secret.secretName="s"` + because + "secret"},
		{"", `,"initContainers":[{"name":"i","image":"i","envFrom":[{"secretRef":{"name":"s"}}]}]`, `init container i with envFrom referencing secret.secretName="s"` + because + "secret"},
		{"", `,"imagePullSecrets":[{"name":"s"}]`, `imagePullSecrets[0].name="s"` + because + "imagePullSecret"},
	} {
		pod(wrong.container, wrong.spec).fails(403, metav1.StatusReasonForbidden, wrong.message)
	}
	c.post(podsPath, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`).ok()
	c.patch(podsPath+"/p/ephemeralcontainers", strategicPatch, `{"spec":{"ephemeralContainers":[{"name":"e","image":"i","envFrom":[{"secretRef":{"name":"s"}}]}]}}`).
		fails(403, metav1.StatusReasonForbidden, `ephemeral container e with envFrom referencing secret.secretName="s"`+because+"secret")
}

func TestLimitRanges(t *testing.T) {
	_, c := start(t)
	c.post("/api/v1/namespaces/default/limitranges", `{"metadata":{"name":"l"},"spec":{"limits":[
		{"type":"Container","default":{"cpu":"500m"},"defaultRequest":{"cpu":"100m"},"min":{"cpu":"50m"},"max":{"cpu":"1"},"maxLimitRequestRatio":{"cpu":"6"}},
		{"type":"Pod","max":{"cpu":"2"}},{"type":"PersistentVolumeClaim","max":{"storage":"1Gi"}}]}}`).ok()
	pod := func(resources string) string {
		return `{"metadata":{"generateName":"p-"},"spec":{"containers":[{"name":"c","image":"i","resources":{` + resources + `}}]}}`
	}
	got := decoded[corev1.Pod](c.post(podsPath, pod("")).ok())
	require.Equal(t, "500m", got.Spec.Containers[0].Resources.Limits.Cpu().String())
	require.Equal(t, "100m", got.Spec.Containers[0].Resources.Requests.Cpu().String())
	require.Equal(t, corev1.PodQOSBurstable, got.Status.QOSClass, "what was filled in counts")
	require.Equal(t, "LimitRanger plugin set: cpu request for container c; cpu limit for container c", got.Annotations["kubernetes.io/limit-ranger"])
	c.post(podsPath, pod(`"requests":{"cpu":"10m"}`)).fails(403, metav1.StatusReasonForbidden, "minimum cpu usage per Container is 50m, but request is 10m")
	c.post(podsPath, pod(`"limits":{"cpu":"3"}`)).fails(403, metav1.StatusReasonForbidden,
		"[maximum cpu usage per Container is 1, but limit is 3, maximum cpu usage per Pod is 2, but limit is 3]")
	c.post(podsPath, pod(`"requests":{"cpu":"100m"},"limits":{"cpu":"1"}`)).fails(403, metav1.StatusReasonForbidden,
		"cpu max limit to request ratio per Container is 6, but provided ratio is 10.000000")
	c.post("/api/v1/namespaces/default/persistentvolumeclaims", `{"metadata":{"name":"big"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"2Gi"}}}}`).
		fails(403, metav1.StatusReasonForbidden, "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi")
}

func TestPriorityClasses(t *testing.T) {
	_, c := start(t)
	const classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
	pod := func(spec string) string {
		return `{"metadata":{"generateName":"p-"},"spec":{"containers":[{"name":"c","image":"i"}]` + spec + `}}`
	}
	require.Equal(t, int32(2000001000), *decoded[corev1.Pod](c.post(podsPath, pod(`,"priorityClassName":"system-node-critical"`)).ok()).Spec.Priority)
	require.Equal(t, int32(0), *decoded[corev1.Pod](c.post(podsPath, pod("")).ok()).Spec.Priority)
	c.post(podsPath, pod(`,"priorityClassName":"none"`)).fails(403, metav1.StatusReasonForbidden, "no PriorityClass with name none was found")
	c.post(podsPath, pod(`,"priority":7`)).fails(403, metav1.StatusReasonForbidden, "the integer value of priority (7) must not be provided in pod spec")
	c.post(classes, `{"metadata":{"name":"usual"},"value":100,"globalDefault":true,"preemptionPolicy":"Never"}`).ok()
	got := decoded[corev1.Pod](c.post(podsPath, pod("")).ok())
	require.Equal(t, int32(100), *got.Spec.Priority)
	require.Equal(t, "usual", got.Spec.PriorityClassName)
	require.Equal(t, corev1.PreemptNever, *got.Spec.PreemptionPolicy)
	c.post(classes, `{"metadata":{"name":"other"},"value":1,"globalDefault":true}`).fails(403, metav1.StatusReasonForbidden, "PriorityClass usual is already marked as default")
}

func TestRuntimeClasses(t *testing.T) {
	_, c := start(t)
	pod := func(class string) string {
		return `{"metadata":{"generateName":"p-"},"spec":{"runtimeClassName":"` + class + `","containers":[{"name":"c","image":"i"}]}}`
	}
	c.post(podsPath, pod("none")).fails(403, metav1.StatusReasonForbidden, `pod rejected: RuntimeClass "none" not found`)
	c.post("/apis/node.k8s.io/v1/runtimeclasses", `{"metadata":{"name":"vm"},"handler":"vm","overhead":{"podFixed":{"memory":"64Mi"}},
		"scheduling":{"nodeSelector":{"vm":"yes"},"tolerations":[{"key":"vm","operator":"Exists"}]}}`).ok()
	got := decoded[corev1.Pod](c.post(podsPath, pod("vm")).ok())
	require.Equal(t, "64Mi", got.Spec.Overhead.Memory().String())
	require.Equal(t, map[string]string{"vm": "yes"}, got.Spec.NodeSelector)
	require.Equal(t, "vm", got.Spec.Tolerations[2].Key)
}

func TestDefaultClasses(t *testing.T) {
	_, c := start(t)
	claim := func(name, spec string) string {
		return `{"metadata":{"name":"` + name + `"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}` + spec + `}}`
	}
	const claims, ingresses = "/api/v1/namespaces/default/persistentvolumeclaims", "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
	require.Nil(t, decoded[corev1.PersistentVolumeClaim](c.post(claims, claim("a", "")).ok()).Spec.StorageClassName)
	c.post("/apis/storage.k8s.io/v1/storageclasses", `{"metadata":{"name":"fast","annotations":{"storageclass.kubernetes.io/is-default-class":"true"}},"provisioner":"p"}`).ok()
	require.Equal(t, "fast", *decoded[corev1.PersistentVolumeClaim](c.post(claims, claim("b", "")).ok()).Spec.StorageClassName)
	require.Empty(t, *decoded[corev1.PersistentVolumeClaim](c.post(claims, claim("c", `,"storageClassName":""`)).ok()).Spec.StorageClassName)
	c.post("/apis/networking.k8s.io/v1/ingressclasses", `{"metadata":{"name":"front","annotations":{"ingressclass.kubernetes.io/is-default-class":"true"}},"spec":{"controller":"a/b"}}`).ok()
	ingress := c.post(ingresses, `{"metadata":{"name":"i"},"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}}`).ok()
	require.Equal(t, "front", *decoded[networkingv1.Ingress](ingress).Spec.IngressClassName)
}
