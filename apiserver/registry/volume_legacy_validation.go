package registry

import (
	"net"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// legacyVolumeKinds are the sources of volumes that this project has no driver for. They are judged and stored all
// the same, for drivers that somebody brings along.
func legacyVolumeKinds(path *field.Path, v *corev1.VolumeSource) []volumeKind {
	type check = func(*field.Path) field.ErrorList
	needs := func(pairs func() []string) check {
		return func(p *field.Path) field.ErrorList { return requiredFields(p, pairs()...) }
	}
	return []volumeKind{
		{"gitRepo", v.GitRepo != nil, func(p *field.Path) field.ErrorList {
			return append(required(p.Child("repository"), v.GitRepo.Repository), descendingPath(p.Child("directory"), v.GitRepo.Directory)...)
		}},
		{"gcePersistentDisk", v.GCEPersistentDisk != nil, func(*field.Path) field.ErrorList {
			return partitioned(path.Child("persistentDisk"), "pdName", v.GCEPersistentDisk.PDName, v.GCEPersistentDisk.Partition) // the path that Kubernetes gives
		}},
		{"awsElasticBlockStore", v.AWSElasticBlockStore != nil, func(p *field.Path) field.ErrorList {
			return partitioned(p, "volumeID", v.AWSElasticBlockStore.VolumeID, v.AWSElasticBlockStore.Partition)
		}},
		{"iscsi", v.ISCSI != nil, func(p *field.Path) field.ErrorList { return iscsi(p, v.ISCSI) }},
		{"glusterfs", v.Glusterfs != nil, needs(func() []string { return []string{"endpoints", v.Glusterfs.EndpointsName, "path", v.Glusterfs.Path} })},
		{"flocker", v.Flocker != nil, func(p *field.Path) field.ErrorList { return flocker(p, v.Flocker) }},
		{"rbd", v.RBD != nil, needs(func() []string {
			return []string{"monitors", strings.Join(v.RBD.CephMonitors, ","), "image", v.RBD.RBDImage}
		})},
		{"cinder", v.Cinder != nil, func(p *field.Path) field.ErrorList {
			return append(required(p.Child("volumeID"), v.Cinder.VolumeID), secretName(p, v.Cinder.SecretRef)...)
		}},
		{"cephfs", v.CephFS != nil, needs(func() []string { return []string{"monitors", strings.Join(v.CephFS.Monitors, ",")} })},
		{"quobyte", v.Quobyte != nil, func(p *field.Path) field.ErrorList { return quobyte(p, v.Quobyte) }},
		{"fc", v.FC != nil, func(p *field.Path) field.ErrorList { return fibreChannel(p, v.FC) }},
		{"flexVolume", v.FlexVolume != nil, func(p *field.Path) field.ErrorList { return flexVolume(p, v.FlexVolume) }},
		{"azureFile", v.AzureFile != nil, needs(func() []string {
			return []string{"secretName", v.AzureFile.SecretName, "shareName", v.AzureFile.ShareName}
		})},
		{"vsphereVolume", v.VsphereVolume != nil, needs(func() []string { return []string{"volumePath", v.VsphereVolume.VolumePath} })},
		{"photonPersistentDisk", v.PhotonPersistentDisk != nil, needs(func() []string { return []string{"pdID", v.PhotonPersistentDisk.PdID} })},
		{"portworxVolume", v.PortworxVolume != nil, needs(func() []string { return []string{"volumeID", v.PortworxVolume.VolumeID} })},
		{"azureDisk", v.AzureDisk != nil, func(p *field.Path) field.ErrorList { return azureDisk(p, v.AzureDisk) }},
		{"storageos", v.StorageOS != nil, func(p *field.Path) field.ErrorList { return storageOS(p, v.StorageOS) }},
		{"scaleIO", v.ScaleIO != nil, needs(func() []string {
			return []string{"gateway", v.ScaleIO.Gateway, "system", v.ScaleIO.System, "volumeName", v.ScaleIO.VolumeName}
		})},
	}
}

// requiredFields takes names and values in turn.
func requiredFields(path *field.Path, pairs ...string) field.ErrorList {
	var faults field.ErrorList
	for i := 0; i+1 < len(pairs); i += 2 {
		faults = append(faults, required(path.Child(pairs[i]), pairs[i+1])...)
	}
	return faults
}

func partitioned(path *field.Path, child, name string, partition int32) field.ErrorList {
	faults := required(path.Child(child), name)
	if partition < 0 || partition > 255 {
		faults = append(faults, field.Invalid(path.Child("partition"), partition, validation.InclusiveRangeError(1, 255)))
	}
	return faults
}

func secretName(path *field.Path, ref *corev1.LocalObjectReference) field.ErrorList {
	if ref == nil {
		return nil
	}
	return required(path.Child("secretRef", "name"), ref.Name)
}

func unitNumber(path *field.Path, lun int32) field.ErrorList {
	if lun < 0 || lun > 255 {
		return field.ErrorList{field.Invalid(path.Child("lun"), lun, validation.InclusiveRangeError(0, 255))}
	}
	return nil
}

// initiatorNames are the three formats of names on iSCSI (RFC 3721), by their first letters.
var initiatorNames = map[string]*regexp.Regexp{
	"iqn": regexp.MustCompile(`iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$`),
	"eui": regexp.MustCompile(`^eui.[[:alnum:]]{16}$`),
	"naa": regexp.MustCompile(`^naa.[[:alnum:]]{32}$`),
}

func initiatorName(path *field.Path, name string) field.ErrorList {
	format := initiatorNames[name[:min(3, len(name))]]
	switch {
	case format == nil:
		return field.ErrorList{field.Invalid(path, name, "must be valid format starting with iqn, eui, or naa")}
	case !format.MatchString(name):
		return field.ErrorList{field.Invalid(path, name, "must be valid format")}
	}
	return nil
}

func iscsi(path *field.Path, s *corev1.ISCSIVolumeSource) field.ErrorList {
	faults := required(path.Child("targetPortal"), s.TargetPortal)
	if s.IQN == "" {
		faults = append(faults, required(path.Child("iqn"), "")...)
	} else {
		faults = append(faults, initiatorName(path.Child("iqn"), s.IQN)...)
	}
	faults = append(faults, unitNumber(path, s.Lun)...)
	if (s.DiscoveryCHAPAuth || s.SessionCHAPAuth) && s.SecretRef == nil {
		faults = append(faults, required(path.Child("secretRef"), "")...)
	}
	if s.InitiatorName != nil {
		faults = append(faults, initiatorName(path.Child("initiatorname"), *s.InitiatorName)...)
	}
	return faults
}

func flocker(path *field.Path, s *corev1.FlockerVolumeSource) field.ErrorList {
	var faults field.ErrorList
	switch {
	case s.DatasetName == "" && s.DatasetUUID == "":
		faults = append(faults, field.Required(path, "one of datasetName and datasetUUID is required"))
	case s.DatasetName != "" && s.DatasetUUID != "":
		faults = append(faults, field.Invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
	}
	if strings.Contains(s.DatasetName, "/") {
		faults = append(faults, field.Invalid(path.Child("datasetName"), s.DatasetName, "must not contain '/'"))
	}
	return faults
}

func quobyte(path *field.Path, s *corev1.QuobyteVolumeSource) field.ErrorList {
	const pairs = "must be a host:port pair or multiple pairs separated by commas"
	var faults field.ErrorList
	switch registry := path.Child("registry"); {
	case s.Registry == "":
		faults = append(faults, field.Required(registry, pairs))
	case len(s.Tenant) >= 65:
		faults = append(faults, field.Required(path.Child("tenant"), "must be a UUID and may not exceed a length of 64 characters"))
	default:
		for pair := range strings.SplitSeq(s.Registry, ",") {
			if _, _, err := net.SplitHostPort(pair); err != nil {
				faults = append(faults, field.Invalid(registry, s.Registry, pairs))
			}
		}
	}
	return append(faults, required(path.Child("volume"), s.Volume)...)
}

func fibreChannel(path *field.Path, s *corev1.FCVolumeSource) field.ErrorList {
	var faults field.ErrorList
	names := path.Child("targetWWNs")
	switch {
	case len(s.TargetWWNs) == 0 && len(s.WWIDs) == 0:
		faults = append(faults, field.Required(names, "must specify either targetWWNs or wwids, but not both"))
	case len(s.TargetWWNs) > 0 && len(s.WWIDs) > 0:
		faults = append(faults, field.Invalid(names, s.TargetWWNs, "targetWWNs and wwids can not be specified simultaneously"))
	}
	switch {
	case len(s.TargetWWNs) == 0:
	case s.Lun == nil:
		faults = append(faults, field.Required(path.Child("lun"), "lun is required if targetWWNs is specified"))
	default:
		faults = append(faults, unitNumber(path, *s.Lun)...)
	}
	return faults
}

func flexVolume(path *field.Path, s *corev1.FlexVolumeSource) field.ErrorList {
	faults := required(path.Child("driver"), s.Driver)
	for key := range inOrder(s.Options) {
		domain, _, _ := strings.Cut(key, "/")
		if d := "." + strings.ToLower(domain); strings.HasSuffix(d, ".kubernetes.io") || strings.HasSuffix(d, ".k8s.io") {
			faults = append(faults, field.Invalid(path.Child("options").Key(key), key, "kubernetes.io and k8s.io namespaces are reserved"))
		}
	}
	return faults
}

func azureDisk(path *field.Path, s *corev1.AzureDiskVolumeSource) field.ErrorList {
	faults := requiredFields(path, "diskName", s.DiskName, "diskURI", s.DataDiskURI)
	if m := s.CachingMode; m != nil {
		faults = append(faults, oneOf(path.Child("cachingMode"), *m, corev1.AzureDataDiskCachingNone, corev1.AzureDataDiskCachingReadOnly, corev1.AzureDataDiskCachingReadWrite)...)
	}
	if s.Kind == nil {
		return faults
	}
	faults = append(faults, oneOf(path.Child("kind"), *s.Kind, corev1.AzureDedicatedBlobDisk, corev1.AzureManagedDisk, corev1.AzureSharedBlobDisk)...)
	prefix, form := "https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
	if *s.Kind == corev1.AzureManagedDisk {
		prefix, form = "/subscriptions/", "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
	}
	if !strings.HasPrefix(s.DataDiskURI, prefix) {
		faults = append(faults, field.NotSupported(path.Child("diskURI"), s.DataDiskURI, []string{form}))
	}
	return faults
}

func storageOS(path *field.Path, s *corev1.StorageOSVolumeSource) field.ErrorList {
	faults := dnsLabel(path.Child("volumeName"), s.VolumeName)
	if s.VolumeNamespace != "" {
		faults = append(faults, dnsLabel(path.Child("volumeNamespace"), s.VolumeNamespace)...)
	}
	return append(faults, secretName(path, s.SecretRef)...)
}
