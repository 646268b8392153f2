package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// judgeSecrets refuses a pod that refers to secrets which its account, annotated with onlyMountable, does not list.
func judgeSecrets(r *Request, pod *corev1.Pod, account *corev1.ServiceAccount) error {
	j := secretJudge{r, account}
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil && !j.listed(v.Secret.SecretName) {
			return j.refused("volume with secret.secretName=%q", v.Secret.SecretName)
		}
	}
	for _, c := range pod.Spec.InitContainers {
		if err := j.environment("init container", c.Name, c.Env, c.EnvFrom); err != nil {
			return err
		}
	}
	for _, c := range pod.Spec.Containers {
		if err := j.environment("container", c.Name, c.Env, c.EnvFrom); err != nil {
			return err
		}
	}
	for _, c := range pod.Spec.EphemeralContainers {
		if err := j.environment("ephemeral container", c.Name, c.Env, c.EnvFrom); err != nil {
			return err
		}
	}
	for i, ref := range pod.Spec.ImagePullSecrets {
		if !slices.Contains(account.ImagePullSecrets, ref) {
			return refused(r, "imagePullSecrets[%d].name=%q is not allowed because service account %s does not reference that imagePullSecret", i, ref.Name, account.Name)
		}
	}
	return nil
}

type secretJudge struct {
	request *Request
	account *corev1.ServiceAccount
}

func (j secretJudge) listed(name string) bool {
	return slices.ContainsFunc(j.account.Secrets, func(ref corev1.ObjectReference) bool { return ref.Name == name })
}

func (j secretJudge) environment(what, container string, env []corev1.EnvVar, from []corev1.EnvFromSource) error {
	for _, e := range env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && !j.listed(e.ValueFrom.SecretKeyRef.Name) {
			return j.refused("%s %s with envVar %s referencing secret.secretName=%q", what, container, e.Name, e.ValueFrom.SecretKeyRef.Name)
		}
	}
	for _, e := range from {
		if e.SecretRef != nil && !j.listed(e.SecretRef.Name) {
			return j.refused("%s %s with envFrom referencing secret.secretName=%q", what, container, e.SecretRef.Name)
		}
	}
	return nil
}

func (j secretJudge) refused(format string, args ...any) error {
	return refused(j.request, format+" is not allowed because service account %s does not reference that secret", append(args, j.account.Name)...)
}
