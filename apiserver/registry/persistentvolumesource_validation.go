package registry

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateVolumeSources: a volume comes from exactly one place; only the first one is judged.
func validateVolumeSources(path *field.Path, v *corev1.PersistentVolume) field.ErrorList {
	var faults field.ErrorList
	found := false
	for _, kind := range persistentVolumeKinds(v) {
		switch {
		case !kind.set:
		case found:
			faults = append(faults, field.Forbidden(path.Child(kind.name), "may not specify more than 1 volume type"))
		default:
			found = true
			faults = append(faults, kind.check(path.Child(kind.name))...)
		}
	}
	if !found {
		faults = append(faults, field.Required(path, "must specify a volume type"))
	}
	return faults
}

// persistentVolumeKinds are all sources of v, in Kubernetes' order of precedence. They differ from those of a pod's
// volumes (volume_legacy_validation.go) in that their secrets have a namespace.
func persistentVolumeKinds(v *corev1.PersistentVolume) []volumeKind {
	s := &v.Spec.PersistentVolumeSource
	type at = *field.Path
	return []volumeKind{
		{"hostPath", s.HostPath != nil, func(p at) field.ErrorList { return hostPath(p, s.HostPath) }},
		{"gcePersistentDisk", s.GCEPersistentDisk != nil, func(p at) field.ErrorList {
			p = p.Root().Child("persistentDisk") // the path that Kubernetes gives
			return partitioned(p, "pdName", s.GCEPersistentDisk.PDName, s.GCEPersistentDisk.Partition)
		}},
		{"awsElasticBlockStore", s.AWSElasticBlockStore != nil, func(p at) field.ErrorList {
			return partitioned(p, "volumeID", s.AWSElasticBlockStore.VolumeID, s.AWSElasticBlockStore.Partition)
		}},
		{"glusterfs", s.Glusterfs != nil, func(p at) field.ErrorList { return persistentGlusterfs(p, s.Glusterfs) }},
		{"flocker", s.Flocker != nil, func(p at) field.ErrorList { return flocker(p, s.Flocker) }},
		{"nfs", s.NFS != nil, func(p at) field.ErrorList { return nfs(p, s.NFS) }},
		{"rbd", s.RBD != nil, func(p at) field.ErrorList {
			return requiredFields(p, "monitors", strings.Join(s.RBD.CephMonitors, ","), "image", s.RBD.RBDImage)
		}},
		{"quobyte", s.Quobyte != nil, func(p at) field.ErrorList { return quobyte(p, s.Quobyte) }},
		{"cephfs", s.CephFS != nil, func(p at) field.ErrorList {
			return requiredFields(p, "monitors", strings.Join(s.CephFS.Monitors, ","))
		}},
		{"iscsi", s.ISCSI != nil, func(p at) field.ErrorList { return persistentISCSI(p, v.Name, s.ISCSI) }},
		{"cinder", s.Cinder != nil, func(p at) field.ErrorList {
			faults := requiredFields(p, "volumeID", s.Cinder.VolumeID)
			if ref := s.Cinder.SecretRef; ref != nil {
				faults = append(faults, requiredFields(p.Child("secretRef"), "name", ref.Name, "namespace", ref.Namespace)...)
			}
			return faults
		}},
		{"fc", s.FC != nil, func(p at) field.ErrorList { return fibreChannel(p, s.FC) }},
		{"flexVolume", s.FlexVolume != nil, func(p at) field.ErrorList {
			return flexVolume(p, &corev1.FlexVolumeSource{Driver: s.FlexVolume.Driver, Options: s.FlexVolume.Options})
		}},
		{"azureFile", s.AzureFile != nil, func(p at) field.ErrorList {
			faults := requiredFields(p, "secretName", s.AzureFile.SecretName, "shareName", s.AzureFile.ShareName)
			if n := s.AzureFile.SecretNamespace; n != nil {
				faults = append(faults, required(p.Child("secretNamespace"), *n)...)
			}
			return faults
		}},
		{"vsphereVolume", s.VsphereVolume != nil, func(p at) field.ErrorList { return requiredFields(p, "volumePath", s.VsphereVolume.VolumePath) }},
		{"photonPersistentDisk", s.PhotonPersistentDisk != nil, func(p at) field.ErrorList { return requiredFields(p, "pdID", s.PhotonPersistentDisk.PdID) }},
		{"portworxVolume", s.PortworxVolume != nil, func(p at) field.ErrorList { return requiredFields(p, "volumeID", s.PortworxVolume.VolumeID) }},
		{"azureDisk", s.AzureDisk != nil, func(p at) field.ErrorList { return azureDisk(p, s.AzureDisk) }},
		{"scaleIO", s.ScaleIO != nil, func(p at) field.ErrorList {
			return requiredFields(p, "gateway", s.ScaleIO.Gateway, "system", s.ScaleIO.System, "volumeName", s.ScaleIO.VolumeName)
		}},
		{"local", s.Local != nil, func(p at) field.ErrorList { return localVolume(p, s.Local, v.Spec.NodeAffinity) }},
		{"storageos", s.StorageOS != nil, func(p at) field.ErrorList { return persistentStorageOS(p, s.StorageOS) }},
		{"csi", s.CSI != nil, func(p at) field.ErrorList { return persistentCSI(p, s.CSI) }},
	}
}

func localVolume(path *field.Path, l *corev1.LocalVolumeSource, affinity *corev1.VolumeNodeAffinity) field.ErrorList {
	faults := required(path.Child("path"), l.Path)
	faults = append(faults, noBacksteps(path.Child("path"), l.Path)...)
	if affinity == nil {
		faults = append(faults, field.Required(specPath.Child("nodeAffinity"), "Local volume requires node affinity"))
	}
	return faults
}

func persistentGlusterfs(path *field.Path, g *corev1.GlusterfsPersistentVolumeSource) field.ErrorList {
	faults := requiredFields(path, "endpoints", g.EndpointsName, "path", g.Path)
	switch at, n := path.Child("endpointsNamespace"), g.EndpointsNamespace; {
	case n == nil:
	case *n == "":
		faults = append(faults, field.Invalid(at, *n, "if the endpointnamespace is set, it must be a valid namespace name"))
	default:
		faults = append(faults, dnsLabel(at, *n)...)
	}
	return faults
}

func persistentISCSI(path *field.Path, volume string, s *corev1.ISCSIPersistentVolumeSource) field.ErrorList {
	faults := required(path.Child("targetPortal"), s.TargetPortal)
	if s.InitiatorName != nil && len(volume+":"+s.TargetPortal) > 64 {
		faults = append(faults, field.Invalid(path.Child("targetportal"), s.TargetPortal,
			"Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."))
	}
	if s.IQN == "" {
		faults = append(faults, required(path.Child("iqn"), "")...)
	} else {
		faults = append(faults, persistentInitiator(path.Child("iqn"), s.IQN)...)
	}
	faults = append(faults, unitNumber(path, s.Lun)...)
	if (s.DiscoveryCHAPAuth || s.SessionCHAPAuth) && s.SecretRef == nil {
		faults = append(faults, required(path.Child("secretRef"), "")...)
	}
	if s.SecretRef != nil {
		faults = append(faults, required(path.Child("secretRef", "name"), s.SecretRef.Name)...)
	}
	if s.InitiatorName != nil {
		faults = append(faults, persistentInitiator(path.Child("initiatorname"), *s.InitiatorName)...)
	}
	return faults
}

// persistentInitiator is initiatorName with fewer words.
func persistentInitiator(path *field.Path, name string) field.ErrorList {
	format := initiatorNames[name[:min(3, len(name))]]
	if format == nil || !format.MatchString(name) {
		return field.ErrorList{field.Invalid(path, name, "must be valid format")}
	}
	return nil
}

func persistentStorageOS(path *field.Path, s *corev1.StorageOSPersistentVolumeSource) field.ErrorList {
	faults := storageOS(path, &corev1.StorageOSVolumeSource{VolumeName: s.VolumeName, VolumeNamespace: s.VolumeNamespace})
	if s.SecretRef != nil {
		faults = append(faults, requiredFields(path.Child("secretRef"), "name", s.SecretRef.Name, "namespace", s.SecretRef.Namespace)...)
	}
	return faults
}

// persistentCSI. The names are those of the CSI specification; the secrets are for calls to the driver.
func persistentCSI(path *field.Path, c *corev1.CSIPersistentVolumeSource) field.ErrorList {
	faults := csiDriverName(path.Child("driver"), c.Driver)
	faults = append(faults, required(path.Child("volumeHandle"), c.VolumeHandle)...)
	for _, secret := range []struct {
		name string
		ref  *corev1.SecretReference
	}{
		{"controllerPublishSecretRef", c.ControllerPublishSecretRef},
		{"controllerExpandSecretRef", c.ControllerExpandSecretRef},
		{"nodePublishSecretRef", c.NodePublishSecretRef},
		{"nodeExpandSecretRef", c.NodeExpandSecretRef},
	} {
		if secret.ref == nil {
			continue
		}
		at := path.Child(secret.name)
		if secret.ref.Name == "" {
			faults = append(faults, required(at.Child("name"), "")...)
		} else {
			faults = append(faults, dnsSubdomain(at.Child("name"), secret.ref.Name)...)
		}
		faults = append(faults, dnsLabel(at.Child("namespace"), secret.ref.Namespace)...)
	}
	return faults
}
