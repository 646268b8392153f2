package registry

import (
	corev1 "k8s.io/api/core/v1"
)

// dropGated clears the fields of a pod spec whose feature gates are off in Kubernetes 1.37 by default: a request
// may set them, and they are not stored. The gates: AtomicWriteVolumeUserFields, ContainerStopSignals,
// EmptyDirVolumeMode, EvictionRequestAPI, GenericWorkload, GRPCContainerProbeTLS, H2CContainerProbe and
// VolumeBindMountOptions.
func dropGated(s *corev1.PodSpec) {
	s.SchedulingGroup, s.EvictionResponders = nil, nil
	for i := range s.Volumes {
		dropGatedOfVolume(&s.Volumes[i].VolumeSource)
	}
	for _, c := range everyContainer(s) {
		dropGatedOfContainer(c)
	}
}

// everyContainer lists the containers of a pod, of every sort.
func everyContainer(s *corev1.PodSpec) []*corev1.Container {
	out := make([]*corev1.Container, 0, len(s.InitContainers)+len(s.Containers)+len(s.EphemeralContainers))
	for i := range s.InitContainers {
		out = append(out, &s.InitContainers[i])
	}
	for i := range s.Containers {
		out = append(out, &s.Containers[i])
	}
	for i := range s.EphemeralContainers {
		out = append(out, (*corev1.Container)(&s.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return out
}

func dropGatedOfContainer(c *corev1.Container) {
	for i := range c.VolumeMounts {
		c.VolumeMounts[i].BindMountOptions = nil
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p == nil {
			continue
		}
		if p.HTTPGet != nil {
			p.HTTPGet.Protocol = nil
		}
		if p.GRPC != nil {
			p.GRPC.Mode = nil
		}
	}
	if c.Lifecycle == nil {
		return
	}
	for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if h != nil && h.HTTPGet != nil {
			h.HTTPGet.Protocol = nil
		}
	}
	if c.Lifecycle.StopSignal != nil {
		c.Lifecycle.StopSignal = nil
		if *c.Lifecycle == (corev1.Lifecycle{}) {
			c.Lifecycle = nil
		}
	}
}

// dropGatedOfVolume clears the owners of single files, and the mode of an emptyDir.
func dropGatedOfVolume(v *corev1.VolumeSource) {
	if v.EmptyDir != nil {
		v.EmptyDir.Mode = nil
	}
	if v.Secret != nil {
		v.Secret.DefaultUser = nil
		dropUsers(v.Secret.Items)
	}
	if v.ConfigMap != nil {
		v.ConfigMap.DefaultUser = nil
		dropUsers(v.ConfigMap.Items)
	}
	if v.DownwardAPI != nil {
		v.DownwardAPI.DefaultUser = nil
		dropFileUsers(v.DownwardAPI.Items)
	}
	if v.Projected == nil {
		return
	}
	v.Projected.DefaultUser = nil
	for i := range v.Projected.Sources {
		dropGatedOfProjection(&v.Projected.Sources[i])
	}
}

func dropGatedOfProjection(p *corev1.VolumeProjection) {
	if p.Secret != nil {
		dropUsers(p.Secret.Items)
	}
	if p.ConfigMap != nil {
		dropUsers(p.ConfigMap.Items)
	}
	if p.DownwardAPI != nil {
		dropFileUsers(p.DownwardAPI.Items)
	}
	if p.ServiceAccountToken != nil {
		p.ServiceAccountToken.User = nil
	}
	if p.ClusterTrustBundle != nil {
		p.ClusterTrustBundle.User = nil
	}
	if p.PodCertificate != nil {
		p.PodCertificate.User = nil
	}
}

func dropUsers(items []corev1.KeyToPath) {
	for i := range items {
		items[i].User = nil
	}
}

func dropFileUsers(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		files[i].User = nil
	}
}
