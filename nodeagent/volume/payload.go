package volume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kontiki/nodeagent/podspec"
)

// file is one file of an API volume.
type file struct {
	data []byte
	mode int32
	// expires is set for tokens, keys and certificates: unix seconds at which the file must be made anew.
	expires int64
}

// payload is the wanted content of a volume: relative path to file.
type payload map[string]file

// builder collects the files of one volume.
type builder struct {
	ctx     context.Context
	manager *Manager
	pod     *corev1.Pod
	in      Input
	old     payload // what the volume holds now: unexpired tokens are kept
	files   payload
}

// payload evaluates the source of v.
func (m *Manager) payload(ctx context.Context, pod *corev1.Pod, v *corev1.Volume, in Input, old payload) (payload, error) {
	b := &builder{ctx: ctx, manager: m, pod: pod, in: in, old: old, files: payload{}}
	var err error
	switch {
	case v.ConfigMap != nil:
		s := v.ConfigMap
		err = b.configMap(s.Name, s.Items, mode(s.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode), s.Optional)
	case v.Secret != nil:
		s := v.Secret
		err = b.secret(s.SecretName, s.Items, mode(s.DefaultMode, corev1.SecretVolumeSourceDefaultMode), s.Optional)
	case v.DownwardAPI != nil:
		s := v.DownwardAPI
		err = b.downward(s.Items, mode(s.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode))
	case v.Projected != nil:
		err = b.projected(v.Name, v.Projected)
	}
	return b.files, err
}

func (b *builder) projected(volume string, p *corev1.ProjectedVolumeSource) error {
	def := mode(p.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range p.Sources {
		var err error
		switch s := &p.Sources[i]; {
		case s.ConfigMap != nil:
			err = b.configMap(s.ConfigMap.Name, s.ConfigMap.Items, def, s.ConfigMap.Optional)
		case s.Secret != nil:
			err = b.secret(s.Secret.Name, s.Secret.Items, def, s.Secret.Optional)
		case s.DownwardAPI != nil:
			err = b.downward(s.DownwardAPI.Items, def)
		case s.ServiceAccountToken != nil:
			err = b.token(s.ServiceAccountToken, def)
		case s.ClusterTrustBundle != nil:
			err = b.trustBundle(s.ClusterTrustBundle, def)
		case s.PodCertificate != nil:
			err = b.certificate(fmt.Sprintf("%s/%d", volume, i), s.PodCertificate, def)
		default:
			err = ErrUnsupported
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func mode(p *int32, def int32) int32 {
	if p != nil {
		return *p
	}
	return def
}

func (b *builder) configMap(name string, items []corev1.KeyToPath, def int32, optional *bool) error {
	cm, err := b.in.Sources.ConfigMap(b.ctx, b.pod.Namespace, name)
	if err != nil {
		return skipIfOptional(err, optional)
	}
	data := make(map[string][]byte, len(cm.Data)+len(cm.BinaryData))
	for k, v := range cm.Data {
		data[k] = []byte(v)
	}
	for k, v := range cm.BinaryData {
		data[k] = v
	}
	return b.keys("configmap", data, items, def, optional)
}

func (b *builder) secret(name string, items []corev1.KeyToPath, def int32, optional *bool) error {
	s, err := b.in.Sources.Secret(b.ctx, b.pod.Namespace, name)
	if err != nil {
		return skipIfOptional(err, optional)
	}
	return b.keys("secret", s.Data, items, def, optional)
}

func skipIfOptional(err error, optional *bool) error {
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil
	}
	return err
}

// keys adds all of data, or the items alone.
func (b *builder) keys(kind string, data map[string][]byte, items []corev1.KeyToPath, def int32, optional *bool) error {
	if len(items) == 0 {
		for k, v := range data {
			b.files[k] = file{data: v, mode: def}
		}
		return nil
	}
	for _, it := range items {
		v, ok := data[it.Key]
		if !ok {
			if optional != nil && *optional {
				continue
			}
			return fmt.Errorf("%s %w: %s", kind, ErrKey, it.Key)
		}
		b.files[it.Path] = file{data: v, mode: mode(it.Mode, def)}
	}
	return nil
}

func (b *builder) downward(items []corev1.DownwardAPIVolumeFile, def int32) error {
	for i := range items {
		it := &items[i]
		var text string
		var err error
		switch {
		case it.FieldRef != nil:
			text, err = podspec.FieldRef(b.pod, b.in.Facts, it.FieldRef.FieldPath)
		case it.ResourceFieldRef != nil:
			text, err = podspec.ResourceFieldRef(b.pod, b.in.Facts, it.ResourceFieldRef.ContainerName, it.ResourceFieldRef)
		}
		if err != nil {
			return err
		}
		b.files[it.Path] = file{data: []byte(text), mode: mode(it.Mode, def)}
	}
	return nil
}
