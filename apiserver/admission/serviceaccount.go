package admission

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"
)

// serviceAccount gives a pod its account, the account's image pull secrets and, unless pod or account opt out, a volume with
// a token of it, the cluster's CA and the pod's namespace at the place where clients look.
type serviceAccount struct{ objects Objects }

const (
	defaultAccount = "default"
	// tokenPath is where client libraries look for the token of the pod that they run in.
	tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenSeconds is an hour and a bit, by which Kubernetes tells tokens that nobody asked for.
	tokenSeconds    = 3607
	tokenVolumeMode = 0o644
	rootCAConfigMap = "kube-root-ca.crt"
	// onlyMountable is the annotation of an account by which its pods may use no secrets but those that it lists.
	onlyMountable = "kubernetes.io/enforce-mountable-secrets"
)

var serviceAccounts = corev1.SchemeGroupVersion.WithResource("serviceaccounts")

// Mutate implements Mutator.
func (s serviceAccount) Mutate(ctx context.Context, r *Request) error {
	pod := newPod(r)
	if pod == nil || isMirror(pod) {
		return nil
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = defaultAccount
		pod.Spec.DeprecatedServiceAccount = defaultAccount
	}
	account, err := s.accountOf(ctx, r, pod)
	if err != nil {
		return err
	}
	if wantsToken(pod, account) {
		mountToken(pod)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = slices.Clone(account.ImagePullSecrets)
	}
	return nil
}

// Validate implements Validator.
func (s serviceAccount) Validate(ctx context.Context, r *Request) error {
	pod, ok := r.Object.(*corev1.Pod)
	debugged := ok && r.Operation == Update && r.Subresource == "ephemeralcontainers"
	if !debugged && newPod(r) == nil {
		return nil
	}
	if isMirror(pod) && !debugged {
		if pod.Spec.ServiceAccountName != "" {
			return refused(r, "a mirror pod may not reference service accounts")
		}
		return nil
	}
	account, err := s.accountOf(ctx, r, pod)
	if err != nil {
		return err
	}
	if only, _ := strconv.ParseBool(account.Annotations[onlyMountable]); !only {
		return nil
	}
	if debugged { // the rest of the pod has been admitted
		pod = &corev1.Pod{Spec: corev1.PodSpec{EphemeralContainers: pod.Spec.EphemeralContainers}}
	}
	return judgeSecrets(r, pod, account)
}

func (s serviceAccount) accountOf(ctx context.Context, r *Request, pod *corev1.Pod) (*corev1.ServiceAccount, error) {
	found, err := s.objects.Get(ctx, serviceAccounts, r.Namespace, pod.Spec.ServiceAccountName)
	if apierrors.IsNotFound(err) {
		return nil, refused(r, "error looking up service account %s/%s: %w", r.Namespace, pod.Spec.ServiceAccountName, err)
	}
	if err != nil {
		return nil, err
	}
	return found.(*corev1.ServiceAccount), nil
}

// wantsToken: the pod's word comes first, then the account's; without either a pod gets one.
func wantsToken(pod *corev1.Pod, account *corev1.ServiceAccount) bool {
	if say := pod.Spec.AutomountServiceAccountToken; say != nil {
		return *say
	}
	if say := account.AutomountServiceAccountToken; say != nil {
		return *say
	}
	return true
}

// mountToken adds the volume, and a mount of it to each container that has none at its place yet.
func mountToken(pod *corev1.Pod) {
	name := tokenVolumeName(pod)
	mounted := false
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c := &list[i]
			if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == tokenPath }) {
				continue
			}
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: tokenPath})
			mounted = true
		}
	}
	if mounted && !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name }) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, tokenVolume(name))
	}
}

const tokenVolumePrefix = "kube-api-access-"

// tokenVolumeName is the name of a volume that is already there, as in a pod that was copied from another, or a new one.
func tokenVolumeName(pod *corev1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		if len(v.Name) > len(tokenVolumePrefix) && v.Name[:len(tokenVolumePrefix)] == tokenVolumePrefix {
			return v.Name
		}
	}
	for {
		name := tokenVolumePrefix + rand.String(5)
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name }) {
			return name
		}
	}
}

func tokenVolume(name string) corev1.Volume {
	seconds, mode := int64(tokenSeconds), int32(tokenVolumeMode)
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: &mode,
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &seconds}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: rootCAConfigMap},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}}}
}

// isMirror: a static pod of a node as the API shows it.
func isMirror(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return ok
}

// refused is the answer to a write that a plugin does not let through.
func refused(r *Request, format string, args ...any) error {
	return apierrors.NewForbidden(r.Resource.GroupResource(), r.Name, fmt.Errorf(format, args...))
}
