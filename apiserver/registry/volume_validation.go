package registry

import (
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateVolumes returns the volumes without a fault by name, for the mounts that refer to them. podName is empty in
// a template.
func validateVolumes(path *field.Path, volumes []corev1.Volume, podName string) (map[string]*corev1.Volume, field.ErrorList) {
	var faults field.ErrorList
	byName := map[string]*corev1.Volume{}
	for i := range volumes {
		v, at := &volumes[i], path.Index(i)
		own := volumeSource(at, v, podName)
		own = append(own, dnsLabel(at.Child("name"), v.Name)...)
		if byName[v.Name] != nil {
			own = append(own, field.Duplicate(at.Child("name"), v.Name))
		}
		if len(own) == 0 {
			byName[v.Name] = v
		}
		faults = append(faults, own...)
		if c := v.PersistentVolumeClaim; c != nil && claimedByPod(volumes, podName, c.ClaimName) {
			faults = append(faults, field.Invalid(at.Child("persistentVolumeClaim", "claimName"), c.ClaimName,
				"must not reference a PVC that gets created for an ephemeral volume"))
		}
	}
	return byName, faults
}

// claimedByPod: an ephemeral volume gets a claim of the pod's and its own name.
func claimedByPod(volumes []corev1.Volume, podName, claim string) bool {
	if podName == "" {
		return false
	}
	for i := range volumes {
		if volumes[i].Ephemeral != nil && claim == podName+"-"+volumes[i].Name {
			return true
		}
	}
	return false
}

// A volumeKind is one of the places that a volume can come from.
type volumeKind struct {
	name  string
	set   bool
	check func(*field.Path) field.ErrorList
}

// volumeSource: a volume comes from exactly one place. The first one that is set is judged. Those that this project
// has drivers for are here, the others in volume_legacy_validation.go.
func volumeSource(path *field.Path, v *corev1.Volume, podName string) field.ErrorList {
	var faults field.ErrorList
	found := false
	look := func(kinds []volumeKind) {
		for _, k := range kinds {
			switch {
			case !k.set:
			case found:
				faults = append(faults, field.Forbidden(path.Child(k.name), "may not specify more than 1 volume type"))
			default:
				found = true
				faults = append(faults, k.check(path.Child(k.name))...)
			}
		}
	}
	look([]volumeKind{
		{"emptyDir", v.EmptyDir != nil, func(p *field.Path) field.ErrorList { return emptyDir(p, v.EmptyDir) }},
		{"hostPath", v.HostPath != nil, func(p *field.Path) field.ErrorList { return hostPath(p, v.HostPath) }},
		{"secret", v.Secret != nil, func(p *field.Path) field.ErrorList {
			return keyedVolume(p, "secretName", v.Secret.SecretName, v.Secret.DefaultMode, v.Secret.Items)
		}},
		{"nfs", v.NFS != nil, func(p *field.Path) field.ErrorList { return nfs(p, v.NFS) }},
		{"persistentVolumeClaim", v.PersistentVolumeClaim != nil, func(p *field.Path) field.ErrorList {
			return required(p.Child("claimName"), v.PersistentVolumeClaim.ClaimName)
		}},
		{"downwardAPI", v.DownwardAPI != nil, func(p *field.Path) field.ErrorList {
			return append(fileMode(p.Child("defaultMode"), v.DownwardAPI.DefaultMode), downwardFiles(p, v.DownwardAPI.Items)...)
		}},
		{"configMap", v.ConfigMap != nil, func(p *field.Path) field.ErrorList {
			return keyedVolume(p, "name", v.ConfigMap.Name, v.ConfigMap.DefaultMode, v.ConfigMap.Items)
		}},
	})
	look(legacyVolumeKinds(path, &v.VolumeSource))
	look([]volumeKind{
		{"projected", v.Projected != nil, func(p *field.Path) field.ErrorList { return projected(p, v.Projected) }},
		{"csi", v.CSI != nil, func(p *field.Path) field.ErrorList { return inlineCSI(p, v.CSI) }},
		{"ephemeral", v.Ephemeral != nil, func(*field.Path) field.ErrorList { return ephemeralVolume(path, v, podName) }},
		{"image", v.Image != nil, func(p *field.Path) field.ErrorList {
			return append(required(p.Child("reference"), v.Image.Reference), pullPolicyFaults(p.Child("pullPolicy"), v.Image.PullPolicy)...)
		}},
	})
	if !found {
		faults = append(faults, field.Required(path, "must specify a volume type"))
	}
	return faults
}

func emptyDir(path *field.Path, e *corev1.EmptyDirVolumeSource) field.ErrorList {
	if e.SizeLimit != nil && e.SizeLimit.Sign() < 0 {
		return field.ErrorList{field.Forbidden(path.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity")}
	}
	return nil
}

func hostPath(path *field.Path, h *corev1.HostPathVolumeSource) field.ErrorList {
	if h.Path == "" {
		return required(path.Child("path"), "")
	}
	faults := noBacksteps(path.Child("path"), h.Path)
	if h.Type != nil && *h.Type != corev1.HostPathUnset {
		kinds := []corev1.HostPathType{corev1.HostPathUnset, corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory,
			corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket}
		faults = append(faults, oneOf(path.Child("type"), *h.Type, kinds...)...)
	}
	return faults
}

// keyedVolume is a secret or a config map.
func keyedVolume(path *field.Path, child, name string, mode *int32, items []corev1.KeyToPath) field.ErrorList {
	faults := required(path.Child(child), name)
	faults = append(faults, fileMode(path.Child("defaultMode"), mode)...)
	return append(faults, keyPaths(path.Child("items"), items)...)
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
	if strings.HasPrefix(p, "..") && !strings.HasPrefix(p, "../") {
		faults = append(faults, field.Invalid(path, p, "must not start with '..'"))
	}
	return faults
}

// descendingPath is relative and does not climb out with "..".
func descendingPath(path *field.Path, p string) field.ErrorList {
	var faults field.ErrorList
	if strings.HasPrefix(p, "/") {
		faults = append(faults, field.Invalid(path, p, "must be a relative path"))
	}
	return append(faults, noBacksteps(path, p)...)
}

func noBacksteps(path *field.Path, p string) field.ErrorList {
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return field.ErrorList{field.Invalid(path, p, "must not contain '..'")}
		}
	}
	return nil
}

func nfs(path *field.Path, n *corev1.NFSVolumeSource) field.ErrorList {
	faults := required(path.Child("server"), n.Server)
	faults = append(faults, required(path.Child("path"), n.Path)...)
	if !filepath.IsAbs(n.Path) {
		faults = append(faults, field.Invalid(path.Child("path"), n.Path, "must be an absolute path"))
	}
	return faults
}

func inlineCSI(path *field.Path, c *corev1.CSIVolumeSource) field.ErrorList {
	faults := csiDriverName(path.Child("driver"), c.Driver)
	if ref := c.NodePublishSecretRef; ref != nil && ref.Name == "" {
		faults = append(faults, required(path.Child("nodePublishSecretRef", "name"), "")...)
	} else if ref != nil {
		faults = append(faults, dnsSubdomain(path.Child("name"), ref.Name)...) // the path that Kubernetes gives
	}
	return faults
}

// csiDriverName of the CSI specification: a domain name of at most 63 characters.
func csiDriverName(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var faults field.ErrorList
	if len(name) > 63 {
		faults = append(faults, field.TooLong(path, "", 63))
	}
	// Where the name's form is declared too, one of both rules is told.
	return append(faults, invalid(path, name, validation.IsDNS1123Subdomain(strings.ToLower(name))).WithOrigin("format=k8s-long-name-caseless")...)
}

// ephemeralVolume gets a claim, which is called after the pod and the volume.
func ephemeralVolume(path *field.Path, v *corev1.Volume, podName string) field.ErrorList {
	at, t := path.Child("ephemeral", "volumeClaimTemplate"), v.Ephemeral.VolumeClaimTemplate
	if t == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	faults := apivalidation.ValidateAnnotations(t.Annotations, at.Child("metadata", "annotations"))
	faults = append(faults, metavalidation.ValidateLabels(t.Labels, at.Child("metadata", "labels"))...)
	faults = append(faults, onlyLabels(at.Child("metadata"), t.ObjectMeta)...)
	faults = append(faults, validateClaimSpec(at.Child("spec"), &t.Spec)...)
	if podName == "" || v.Name == "" {
		return faults
	}
	claim := podName + "-" + v.Name
	for _, m := range apivalidation.NameIsDNSSubdomain(claim, false) {
		faults = append(faults, field.Invalid(path.Child("name"), v.Name, fmt.Sprintf("PVC name %q: %v", claim, m)))
	}
	return faults
}

// onlyLabels: of the metadata of a claim template, all but labels and annotations would be lost.
func onlyLabels(path *field.Path, m metav1.ObjectMeta) field.ErrorList {
	var faults field.ErrorList
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"name", m.Name != ""}, {"generateName", m.GenerateName != ""}, {"namespace", m.Namespace != ""}, {"selfLink", m.SelfLink != ""},
		{"uID", m.UID != ""}, {"resourceVersion", m.ResourceVersion != ""}, {"generation", m.Generation != 0},
		{"creationTimestamp", !m.CreationTimestamp.IsZero()}, {"deletionTimestamp", m.DeletionTimestamp != nil},
		{"deletionGracePeriodSeconds", m.DeletionGracePeriodSeconds != nil}, {"ownerReferences", m.OwnerReferences != nil},
		{"finalizers", m.Finalizers != nil}, {"managedFields", m.ManagedFields != nil},
	} {
		if f.set {
			faults = append(faults, field.Forbidden(path.Child(f.name), "cannot be set"))
		}
	}
	return faults
}
