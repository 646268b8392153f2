package registry

import (
	"path/filepath"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateVolumes returns the volumes by name, for the mounts that refer to them.
// Not yet: the fields of sources that this project has no driver for; they are kept as they are.
func validateVolumes(path *field.Path, volumes []corev1.Volume) (map[string]*corev1.Volume, field.ErrorList) {
	var faults field.ErrorList
	byName, seen := map[string]*corev1.Volume{}, names{}
	for i := range volumes {
		v, at := &volumes[i], path.Index(i)
		faults = append(faults, dnsLabel(at.Child("name"), v.Name)...)
		faults = append(faults, seen.add(at.Child("name"), v.Name)...)
		faults = append(faults, oneSource(at, v)...)
		faults = append(faults, volumeSource(at, v)...)
		byName[v.Name] = v
	}
	return byName, faults
}

// oneSource: a volume comes from exactly one place.
func oneSource(path *field.Path, v *corev1.Volume) field.ErrorList {
	var faults field.ErrorList
	found := false
	sources := reflect.ValueOf(v.VolumeSource)
	for i := range sources.NumField() {
		if sources.Field(i).IsNil() {
			continue
		}
		if found {
			child, _, _ := strings.Cut(sources.Type().Field(i).Tag.Get("json"), ",")
			faults = append(faults, field.Forbidden(path.Child(child), "may not specify more than 1 volume type"))
		}
		found = true
	}
	if !found {
		faults = append(faults, field.Required(path, "must specify a volume type"))
	}
	return faults
}

func volumeSource(path *field.Path, v *corev1.Volume) field.ErrorList {
	var faults field.ErrorList
	if e := v.EmptyDir; e != nil && e.SizeLimit != nil && e.SizeLimit.Sign() < 0 {
		faults = append(faults, field.Forbidden(path.Child("emptyDir", "sizeLimit"), "SizeLimit field must be a valid resource quantity"))
	}
	if h := v.HostPath; h != nil {
		faults = append(faults, hostPath(path.Child("hostPath"), h)...)
	}
	if s := v.Secret; s != nil {
		at := path.Child("secret")
		faults = append(faults, required(at.Child("secretName"), s.SecretName)...)
		faults = append(faults, fileMode(at.Child("defaultMode"), s.DefaultMode)...)
		faults = append(faults, keyPaths(at.Child("items"), s.Items)...)
	}
	if c := v.ConfigMap; c != nil {
		at := path.Child("configMap")
		faults = append(faults, required(at.Child("name"), c.Name)...)
		faults = append(faults, fileMode(at.Child("defaultMode"), c.DefaultMode)...)
		faults = append(faults, keyPaths(at.Child("items"), c.Items)...)
	}
	if d := v.DownwardAPI; d != nil {
		at := path.Child("downwardAPI")
		faults = append(faults, fileMode(at.Child("defaultMode"), d.DefaultMode)...)
		faults = append(faults, downwardFiles(at, d.Items)...)
	}
	if p := v.Projected; p != nil {
		faults = append(faults, projected(path.Child("projected"), p)...)
	}
	if c := v.PersistentVolumeClaim; c != nil {
		faults = append(faults, required(path.Child("persistentVolumeClaim", "claimName"), c.ClaimName)...)
	}
	if n := v.NFS; n != nil {
		at := path.Child("nfs")
		faults = append(faults, required(at.Child("server"), n.Server)...)
		faults = append(faults, required(at.Child("path"), n.Path)...)
		if n.Path != "" && !filepath.IsAbs(n.Path) {
			faults = append(faults, field.Invalid(at.Child("path"), n.Path, "must be an absolute path"))
		}
	}
	if c := v.CSI; c != nil {
		faults = append(faults, required(path.Child("csi", "driver"), c.Driver)...)
	}
	return faults
}

func hostPath(path *field.Path, h *corev1.HostPathVolumeSource) field.ErrorList {
	faults := required(path.Child("path"), h.Path)
	for part := range strings.SplitSeq(h.Path, "/") {
		if part == ".." {
			faults = append(faults, field.Invalid(path.Child("path"), h.Path, "must not contain '..'"))
			break
		}
	}
	if h.Type != nil && *h.Type != corev1.HostPathUnset {
		faults = append(faults, oneOf(path.Child("type"), *h.Type,
			corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate,
			corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket)...)
	}
	return faults
}

func keyPaths(path *field.Path, items []corev1.KeyToPath) field.ErrorList {
	var faults field.ErrorList
	for i, item := range items {
		at := path.Index(i)
		faults = append(faults, required(at.Child("key"), item.Key)...)
		faults = append(faults, required(at.Child("path"), item.Path)...)
		faults = append(faults, projectedPath(at.Child("path"), item.Path)...)
		faults = append(faults, fileMode(at.Child("mode"), item.Mode)...)
	}
	return faults
}

// projectedPath: files of a volume stay inside it, and ".." at the start is the node agent's own.
func projectedPath(path *field.Path, p string) field.ErrorList {
	faults := descendingPath(path, p)
	if strings.HasPrefix(p, "..") && !strings.HasPrefix(p, "../") && p != ".." {
		faults = append(faults, field.Invalid(path, p, "must not start with '..'"))
	}
	return faults
}

// fileFields are the fields of the pod that a downward API file can show.
var fileFields = []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}

func downwardFiles(path *field.Path, files []corev1.DownwardAPIVolumeFile) field.ErrorList {
	var faults field.ErrorList
	for _, f := range files { // Kubernetes gives these paths no index
		faults = append(faults, required(path.Child("path"), f.Path)...)
		faults = append(faults, projectedPath(path.Child("path"), f.Path)...)
		faults = append(faults, fileMode(path.Child("mode"), f.Mode)...)
		switch {
		case f.FieldRef != nil:
			faults = append(faults, fieldRef(path.Child("fieldRef"), f.FieldRef, fileFields)...)
			if f.ResourceFieldRef != nil {
				faults = append(faults, field.Invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
			}
		case f.ResourceFieldRef != nil:
			faults = append(faults, required(path.Child("resourceFieldRef", "containerName"), f.ResourceFieldRef.ContainerName)...)
			faults = append(faults, required(path.Child("resourceFieldRef", "resource"), f.ResourceFieldRef.Resource)...)
		default:
			faults = append(faults, field.Required(path, "one of fieldRef and resourceFieldRef is required"))
		}
	}
	return faults
}

func projected(path *field.Path, p *corev1.ProjectedVolumeSource) field.ErrorList {
	faults := fileMode(path.Child("defaultMode"), p.DefaultMode)
	for i, s := range p.Sources {
		at, sources := path.Child("sources").Index(i), 0
		if s.Secret != nil {
			sources++
			faults = append(faults, required(at.Child("secret", "name"), s.Secret.Name)...)
			faults = append(faults, keyPaths(at.Child("secret", "items"), s.Secret.Items)...)
		}
		if s.ConfigMap != nil {
			sources++
			faults = append(faults, required(at.Child("configMap", "name"), s.ConfigMap.Name)...)
			faults = append(faults, keyPaths(at.Child("configMap", "items"), s.ConfigMap.Items)...)
		}
		if s.DownwardAPI != nil {
			sources++
			faults = append(faults, downwardFiles(at.Child("downwardAPI"), s.DownwardAPI.Items)...)
		}
		if t := s.ServiceAccountToken; t != nil {
			sources++
			faults = append(faults, tokenProjection(at.Child("serviceAccountToken"), t)...)
		}
		if s.ClusterTrustBundle != nil || s.PodCertificate != nil {
			sources++
		}
		if sources > 1 {
			faults = append(faults, field.Forbidden(at, "may not specify more than 1 volume type per source"))
		}
	}
	return faults
}

func tokenProjection(path *field.Path, t *corev1.ServiceAccountTokenProjection) field.ErrorList {
	faults := required(path.Child("path"), t.Path)
	switch seconds := t.ExpirationSeconds; {
	case seconds == nil:
		faults = append(faults, field.Required(path.Child("expirationSeconds"), ""))
	case *seconds < 600:
		faults = append(faults, field.Invalid(path.Child("expirationSeconds"), *seconds, "may not specify a duration less than 10 minutes"))
	case *seconds > 1<<32:
		faults = append(faults, field.Invalid(path.Child("expirationSeconds"), *seconds, "may not specify a duration larger than 2^32 seconds"))
	}
	return faults
}
