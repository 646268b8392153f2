package registry

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// What has become of volume plugins that were part of Kubernetes once.
const (
	gone11 = "deprecated in v1.11, non-functional in v1.16+"
	gone16 = "deprecated in v1.16, non-functional in v1.22+"
	gone22 = "deprecated in v1.22, non-functional in v1.25+"
	gone25 = "deprecated in v1.25, non-functional in v1.26+"
	gone28 = "deprecated in v1.28, non-functional in v1.31+"
)

// volumeWarnings are about one volume's source.
func volumeWarnings(path *field.Path, v *corev1.VolumeSource) []string {
	var out []string
	for _, plugin := range []struct {
		used       bool
		name, fate string
	}{
		{v.PhotonPersistentDisk != nil, "photonPersistentDisk", gone11},
		{v.GitRepo != nil, "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
		{v.ScaleIO != nil, "scaleIO", gone16},
		{v.Flocker != nil, "flocker", gone22},
		{v.StorageOS != nil, "storageOS", gone22},
		{v.Quobyte != nil, "quobyte", gone22},
		{v.Glusterfs != nil, "glusterfs", gone25},
		{v.CephFS != nil, "cephfs", gone28},
		{v.RBD != nil, "rbd", gone28},
	} {
		if plugin.used {
			out = append(out, fmt.Sprintf("%s: %s", path.Child(plugin.name), plugin.fate))
		}
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		out = append(out, claimWarnings(path.Child("ephemeral", "volumeClaimTemplate", "spec"), &v.Ephemeral.VolumeClaimTemplate.Spec)...)
	}
	return out
}

func claimWarnings(path *field.Path, s *corev1.PersistentVolumeClaimSpec) []string {
	out := fractionWarning(path.Child("resources", "requests"), s.Resources.Requests, corev1.ResourceStorage)
	return append(out, fractionWarning(path.Child("resources", "limits"), s.Resources.Limits, corev1.ResourceStorage)...)
}

// A mountedFile is a path inside a volume and, in a projected one, what puts it there.
type mountedFile struct{ path, source string }

func (f mountedFile) String() string {
	if f.source == "" {
		return fmt.Sprintf("%q", f.path)
	}
	return fmt.Sprintf("%q (%s)", f.path, f.source)
}

// overlapWarnings find files of one volume of which one hides another, or would have to be a directory.
func overlapWarnings(volumes []corev1.Volume) []string {
	var out []string
	for _, v := range volumes {
		if m := v.ConfigMap; m != nil {
			out = append(out, overlaps(v.Name, fmt.Sprintf("ConfigMap %q", m.Name), keyFiles(m.Items, ""))...)
		}
		if s := v.Secret; s != nil {
			out = append(out, overlaps(v.Name, fmt.Sprintf("Secret %q", s.SecretName), keyFiles(s.Items, ""))...)
		}
		if d := v.DownwardAPI; d != nil {
			out = append(out, overlaps(v.Name, "DownwardAPI", downwardMounts(d.Items, ""))...)
		}
		if v.Projected == nil {
			continue
		}
		var files []mountedFile
		for _, source := range v.Projected.Sources {
			if source == (corev1.VolumeProjection{}) {
				out = append(out, fmt.Sprintf("volume %q (Projected) has no sources provided", v.Name))
			}
			files = append(files, projectedFiles(source)...)
		}
		out = append(out, overlaps(v.Name, "Projected", files)...)
	}
	return out
}

func overlaps(volume, kind string, files []mountedFile) []string {
	var out []string
	for i := range files {
		files[i].path = strings.TrimRight(files[i].path, "/")
		f := files[i]
		for _, other := range files[:i] {
			if f.path == "" || other.path == "" {
				continue
			}
			if strings.HasPrefix(other.path+"/", f.path+"/") || strings.HasPrefix(f.path+"/", other.path+"/") {
				out = append(out, fmt.Sprintf("volume %q (%s): overlapping paths: %s with %s", volume, kind, f, other))
			}
		}
	}
	return out
}

func keyFiles(items []corev1.KeyToPath, source string) []mountedFile {
	var out []mountedFile
	for _, item := range items {
		out = append(out, mountedFile{item.Path, source})
	}
	return out
}

func downwardMounts(items []corev1.DownwardAPIVolumeFile, source string) []mountedFile {
	var out []mountedFile
	for _, item := range items {
		out = append(out, mountedFile{item.Path, source})
	}
	return out
}

func projectedFiles(p corev1.VolumeProjection) []mountedFile {
	switch {
	case p.ConfigMap != nil && p.ConfigMap.Items != nil:
		return keyFiles(p.ConfigMap.Items, fmt.Sprintf("ConfigMap %q", p.ConfigMap.Name))
	case p.Secret != nil && p.Secret.Items != nil:
		return keyFiles(p.Secret.Items, fmt.Sprintf("Secret %q", p.Secret.Name))
	case p.DownwardAPI != nil && p.DownwardAPI.Items != nil:
		return downwardMounts(p.DownwardAPI.Items, "DownwardAPI")
	case p.ServiceAccountToken != nil:
		return []mountedFile{{p.ServiceAccountToken.Path, "ServiceAccountToken"}}
	case p.ClusterTrustBundle != nil:
		b := p.ClusterTrustBundle
		name := cmp.Or(ptr.Deref(b.Name, ""), ptr.Deref(b.SignerName, "")) // validation wants one of them
		return []mountedFile{{b.Path, fmt.Sprintf("ClusterTrustBundle %q", name)}}
	case p.PodCertificate != nil:
		c := p.PodCertificate
		return []mountedFile{{c.CertificateChainPath, "PodCertificate chain"}, {c.KeyPath, "PodCertificate key"}, {c.CredentialBundlePath, "PodCertificate credential bundle"}}
	}
	return nil
}
