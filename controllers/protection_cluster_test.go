package controllers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func testClaim(name, attributes string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: apiresource.MustParse("1Gi")}},
	}}
	if attributes != "" {
		claim.Spec.VolumeAttributesClassName = &attributes
	}
	return claim
}

// gone waits until get finds nothing.
func (c *cluster) gone(what string, get func() error) {
	c.t.Helper()
	c.eventually("end of "+what, func() (bool, string) {
		err := get()
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// A claim in use outlives its deletion until the pod is gone.
func TestClaimsInUseAreKept(t *testing.T) {
	c := startCluster(t)
	ctx := t.Context()
	claims, pods := c.CoreV1().PersistentVolumeClaims(c.namespace), c.CoreV1().Pods(c.namespace)
	for _, name := range []string{"used", "free"} {
		made, err := claims.Create(ctx, testClaim(name, ""), metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"kubernetes.io/pvc-protection"}, made.Finalizers)
	}
	pod := quotaPod("p")
	pod.Spec.NodeName = "somewhere"
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "used"}}}}
	_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	require.NoError(t, err)

	require.NoError(t, claims.Delete(ctx, "used", metav1.DeleteOptions{}))
	require.NoError(t, claims.Delete(ctx, "free", metav1.DeleteOptions{}))
	get := func(name string) func() error {
		return func() error { _, err := claims.Get(ctx, name, metav1.GetOptions{}); return err }
	}
	c.gone("the claim that nobody uses", get("free")) // which was deleted after the other one
	require.NoError(t, get("used")())

	require.NoError(t, pods.Delete(ctx, "p", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
	c.gone("the claim that was used", get("used"))
}

// So are a volume that is bound and the attributes class of a claim; what is older than the plugin gets its finalizer.
func TestVolumesAndAttributesClassesInUseAreKept(t *testing.T) {
	c := startCluster(t)
	ctx := t.Context()
	volumes, classes := c.CoreV1().PersistentVolumes(), c.StorageV1().VolumeAttributesClasses()
	volume, err := volumes.Create(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{corev1.ResourceStorage: apiresource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"kubernetes.io/pv-protection"}, volume.Finalizers)
	volume.Status.Phase = corev1.VolumeBound
	_, err = volumes.UpdateStatus(ctx, volume, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = classes.Create(ctx, &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "a"}, DriverName: "d.example.com", Parameters: map[string]string{"k": "v"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	claims := c.CoreV1().PersistentVolumeClaims(c.namespace)
	claim, err := claims.Create(ctx, testClaim("c", "a"), metav1.CreateOptions{})
	require.NoError(t, err)

	claim.Finalizers = nil // as if it were older
	_, err = claims.Update(ctx, claim, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventually("finalizer", func() (bool, string) {
		claim, err := claims.Get(ctx, "c", metav1.GetOptions{})
		require.NoError(t, err)
		return len(claim.Finalizers) == 1, fmt.Sprint(claim.Finalizers)
	})

	require.NoError(t, classes.Delete(ctx, "a", metav1.DeleteOptions{}))
	require.NoError(t, volumes.Delete(ctx, "v", metav1.DeleteOptions{}))
	class, err := classes.Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, class.DeletionTimestamp)
	require.NoError(t, claims.Delete(ctx, "c", metav1.DeleteOptions{}))
	c.gone("the class", func() error { _, err := classes.Get(ctx, "a", metav1.GetOptions{}); return err })

	volume, err = volumes.Get(ctx, "v", metav1.GetOptions{})
	require.NoError(t, err, "it is bound")
	volume.Status.Phase = corev1.VolumeReleased
	_, err = volumes.UpdateStatus(ctx, volume, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.gone("the volume", func() error { _, err := volumes.Get(ctx, "v", metav1.GetOptions{}); return err })
}
