package registry

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mounts: where the volumes of the pod appear in a container. Kubernetes leaves the index out of some paths.
func (r containerRules) mounts(path *field.Path, c *corev1.Container) field.ErrorList {
	var faults field.ErrorList
	points := map[string]bool{}
	for i, m := range c.VolumeMounts {
		at := path.Index(i)
		faults = append(faults, required(at.Child("name"), m.Name)...)
		if r.volumes[m.Name] == nil {
			faults = append(faults, field.NotFound(at.Child("name"), m.Name))
		}
		faults = append(faults, required(at.Child("mountPath"), m.MountPath)...)
		if points[m.MountPath] {
			faults = append(faults, field.Invalid(at.Child("mountPath"), m.MountPath, "must be unique"))
		}
		points[m.MountPath] = true
		for _, d := range c.VolumeDevices {
			if d.Name == m.Name {
				faults = append(faults, field.Invalid(at.Child("name"), m.Name, "must not already exist in volumeDevices"))
			}
			if d.DevicePath == m.MountPath {
				faults = append(faults, field.Invalid(at.Child("mountPath"), m.MountPath, "must not already exist as a path in volumeDevices"))
			}
		}
		faults = append(faults, descendingPath(path.Child("subPath"), m.SubPath)...)
		if m.SubPath != "" && m.SubPathExpr != "" {
			faults = append(faults, field.Invalid(at.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
		}
		faults = append(faults, descendingPath(path.Child("subPathExpr"), m.SubPathExpr)...)
		faults = append(faults, mountPropagation(path.Child("mountPropagation"), m.MountPropagation, c)...)
		faults = append(faults, recursiveReadOnly(path.Child("recursiveReadOnly"), &m)...)
	}
	return faults
}

// mountPropagation: only who may do anything may mount things on the host.
func mountPropagation(path *field.Path, mode *corev1.MountPropagationMode, c *corev1.Container) field.ErrorList {
	if mode == nil {
		return nil
	}
	faults := supported(path, *mode, corev1.MountPropagationBidirectional, corev1.MountPropagationHostToContainer, corev1.MountPropagationNone)
	if *mode == corev1.MountPropagationBidirectional && (c.SecurityContext == nil || !isTrue(c.SecurityContext.Privileged)) {
		faults = append(faults, field.Forbidden(path, "Bidirectional mount propagation is available only to privileged containers"))
	}
	return faults
}

func recursiveReadOnly(path *field.Path, m *corev1.VolumeMount) field.ErrorList {
	mode := m.RecursiveReadOnly
	if mode == nil || *mode == corev1.RecursiveReadOnlyDisabled {
		return nil
	}
	faults := supported(path, *mode, corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyIfPossible)
	if len(faults) > 0 {
		return faults
	}
	if !m.ReadOnly {
		faults = append(faults, field.Forbidden(path, "may only be specified when readOnly is true"))
	}
	if p := m.MountPropagation; p != nil && *p != corev1.MountPropagationNone {
		faults = append(faults, field.Forbidden(path, "may only be specified when mountPropagation is None or not specified"))
	}
	return faults
}

// devices: claims of the pod that appear as block devices.
func (r containerRules) devices(path *field.Path, c *corev1.Container) field.ErrorList {
	var faults field.ErrorList
	paths, seen := map[string]bool{}, map[string]bool{}
	for i, d := range c.VolumeDevices {
		name, device := path.Index(i).Child("name"), path.Index(i).Child("devicePath")
		bad := func(at *field.Path, value, detail string) { faults = append(faults, field.Invalid(at, value, detail)) }
		faults = append(faults, required(name, d.Name)...)
		if seen[d.Name] {
			bad(name, d.Name, "must be unique")
		}
		switch v := r.volumes[d.Name]; {
		case v == nil:
			faults = append(faults, field.NotFound(name, d.Name))
		case v.PersistentVolumeClaim == nil && v.Ephemeral == nil:
			bad(name, d.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")
		}
		faults = append(faults, required(device, d.DevicePath)...)
		if paths[d.DevicePath] {
			bad(device, d.DevicePath, "must be unique")
		}
		if len(noBacksteps(device, d.DevicePath)) > 0 {
			bad(device, d.DevicePath, "can not contain backsteps ('..')")
		} else {
			paths[d.DevicePath] = true
		}
		for _, m := range c.VolumeMounts {
			if m.Name == d.Name {
				bad(name, d.Name, "must not already exist in volumeMounts")
			}
			if m.MountPath == d.DevicePath {
				bad(device, d.DevicePath, "must not already exist as a path in volumeMounts")
			}
		}
		seen[d.Name] = d.Name != ""
	}
	return faults
}
