package registry

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateEnv(path *field.Path, env []corev1.EnvVar) field.ErrorList {
	var faults field.ErrorList
	for i, e := range env {
		at := path.Index(i)
		if e.Name == "" {
			faults = append(faults, field.Required(at.Child("name"), ""))
		} else {
			faults = append(faults, invalid(at.Child("name"), e.Name, validation.IsRelaxedEnvVarName(e.Name))...)
		}
		if e.ValueFrom != nil {
			faults = append(faults, validateEnvSource(at.Child("valueFrom"), e)...)
		}
	}
	return faults
}

// envFields are the fields of the pod that an environment variable can show.
var envFields = []string{
	"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
	"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
}

func validateEnvSource(path *field.Path, e corev1.EnvVar) field.ErrorList {
	var faults field.ErrorList
	from, sources := e.ValueFrom, 0
	if from.FieldRef != nil {
		sources++
		faults = append(faults, fieldRef(path.Child("fieldRef"), from.FieldRef, envFields)...)
	}
	if from.ResourceFieldRef != nil {
		sources++
		faults = append(faults, resourceFieldRef(path.Child("resourceFieldRef"), from.ResourceFieldRef, false)...)
	}
	if from.ConfigMapKeyRef != nil {
		sources++
		faults = append(faults, keyRef(path.Child("configMapKeyRef"), from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key)...)
	}
	if from.SecretKeyRef != nil {
		sources++
		faults = append(faults, keyRef(path.Child("secretKeyRef"), from.SecretKeyRef.Name, from.SecretKeyRef.Key)...)
	}
	if from.FileKeyRef != nil {
		sources++
		faults = append(faults, fileKeyRef(path.Child("fileKeyRef"), from.FileKeyRef)...)
	}
	switch {
	case sources == 0:
		faults = append(faults, field.Invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case e.Value != "":
		faults = append(faults, field.Invalid(path, "", "may not be specified when `value` is not empty"))
	case sources > 1:
		faults = append(faults, field.Invalid(path, "", "may not have more than one field specified at a time"))
	}
	return faults
}

func keyRef(path *field.Path, name, key string) field.ErrorList {
	faults := invalid(path.Child("name"), name, apivalidation.NameIsDNSSubdomain(name, false))
	if key == "" {
		return append(faults, field.Required(path.Child("key"), ""))
	}
	return append(faults, invalid(path.Child("key"), key, validation.IsConfigMapKey(key))...)
}

// fileKeyRef takes a variable from a file that another container has written.
func fileKeyRef(path *field.Path, ref *corev1.FileKeySelector) field.ErrorList {
	faults := required(path.Child("key"), ref.Key)
	if ref.Key != "" {
		faults = append(faults, invalid(path.Child("key"), ref.Key, validation.IsRelaxedEnvVarName(ref.Key))...)
	}
	faults = append(faults, dnsLabel(path.Child("volumeName"), ref.VolumeName)...)
	faults = append(faults, required(path.Child("path"), ref.Path)...)
	return append(faults, noBacksteps(path.Child("path"), ref.Path)...)
}

// fileKeyVolumes: such a file is in an emptyDir of the pod.
func fileKeyVolumes(path *field.Path, s *corev1.PodSpec) field.ErrorList {
	var faults field.ErrorList
	visitContainers(path, s, func(path *field.Path, c *corev1.Container) {
		for i, e := range c.Env {
			if e.ValueFrom == nil || e.ValueFrom.FileKeyRef == nil {
				continue
			}
			name, at := e.ValueFrom.FileKeyRef.VolumeName, path.Child("env").Index(i).Child("valueFrom", "fileKeyRef", "volumeName")
			v := slices.IndexFunc(s.Volumes, func(v corev1.Volume) bool { return v.Name == name })
			switch {
			case v < 0:
				faults = append(faults, field.NotFound(at, name))
			case s.Volumes[v].EmptyDir == nil:
				faults = append(faults, field.Invalid(at, name, "referenced volume must be of type emptyDir"))
			}
		}
	})
	return faults
}

// fieldRef: a field of the list, or one label or annotation as "metadata.labels['KEY']".
func fieldRef(path *field.Path, ref *corev1.ObjectFieldSelector, allowed []string) field.ErrorList {
	at, name := path.Child("fieldPath"), ref.FieldPath
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	base, key, subscripted := subscript(name)
	if fault := neverShown(ref.APIVersion, name, base, subscripted); fault != "" {
		return field.ErrorList{field.Invalid(at, name, "error converting fieldPath: "+fault)}
	}
	if name == "spec.host" {
		name = "spec.nodeName"
	}
	switch {
	case subscripted && base == "metadata.annotations":
		return qualifiedName(path, strings.ToLower(key))
	case subscripted:
		return qualifiedName(path, key)
	case slices.Contains(allowed, name):
		return nil
	}
	return field.ErrorList{field.NotSupported(at, name, allowed)}
}

// subscript cuts "metadata.labels['KEY']" into its parts.
func subscript(name string) (base, key string, ok bool) {
	base, rest, found := strings.Cut(name, "['")
	key, closed := strings.CutSuffix(rest, "']")
	return base, key, found && closed
}

// shownSomewhere are those that can be selected somewhere or other: as a variable, as a file, or in a list.
var shownSomewhere = slices.Concat(envFields, fileFields, []string{"spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host"})

// neverShown says why no pod ever shows a field. Kubernetes refuses that in other words than what cannot be shown in
// this place.
func neverShown(version, name, base string, subscripted bool) string {
	switch {
	case version != "v1":
		return "unsupported pod version: " + version
	case subscripted && base != "metadata.annotations" && base != "metadata.labels":
		return "field label does not support subscript: " + name
	case !subscripted && !slices.Contains(shownSomewhere, name):
		return "field label not supported: " + name
	}
	return ""
}

// resourceFields are the resources of a container that its environment, or a file, can show.
var resourceFields = []string{"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"}

func hugePagesField(name string) bool {
	return strings.HasPrefix(name, "requests.hugepages-") || strings.HasPrefix(name, "limits.hugepages-")
}

// resourceFieldRef: a file must say of which container.
func resourceFieldRef(path *field.Path, ref *corev1.ResourceFieldSelector, inFile bool) field.ErrorList {
	var faults field.ErrorList
	switch {
	case inFile && ref.ContainerName == "":
		faults = append(faults, field.Required(path.Child("containerName"), ""))
	case ref.Resource == "":
		faults = append(faults, field.Required(path.Child("resource"), ""))
	case !slices.Contains(resourceFields, ref.Resource) && !hugePagesField(ref.Resource):
		faults = append(faults, field.NotSupported(path.Child("resource"), ref.Resource, resourceFields))
	}
	return append(faults, divisor(path.Child("divisor"), ref.Resource, ref.Divisor)...)
}

// byteUnits are the units in which bytes can be shown.
var byteUnits = []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}

func divisor(path *field.Path, name string, unit resource.Quantity) field.ErrorList {
	if unit.IsZero() {
		return nil
	}
	_, kind, _ := strings.Cut(name, ".")
	what := map[string]string{"cpu": "cpu", "memory": "memory", "ephemeral-storage": "local ephemeral storage"}[kind]
	if hugePagesField(name) {
		what = "hugepages"
	}
	switch {
	case what == "":
	case what == "cpu" && unit.String() != "1m" && unit.String() != "1":
		return field.ErrorList{field.Invalid(path, name, "only divisor's values 1m and 1 are supported with the cpu resource")}
	case what != "cpu" && !slices.Contains(byteUnits, unit.String()):
		return field.ErrorList{field.Invalid(path, name, "only divisor's values "+strings.Join(byteUnits, ", ")+" are supported with the "+what+" resource")}
	}
	return nil
}

func validateEnvFrom(path *field.Path, sources []corev1.EnvFromSource) field.ErrorList {
	var faults field.ErrorList
	for i, s := range sources {
		at := path.Index(i)
		if s.Prefix != "" {
			faults = append(faults, invalid(at.Child("prefix"), s.Prefix, validation.IsRelaxedEnvVarName(s.Prefix))...)
		}
		if s.ConfigMapRef != nil {
			faults = append(faults, objectName(at.Child("configMapRef", "name"), s.ConfigMapRef.Name)...)
		}
		if s.SecretRef != nil {
			faults = append(faults, objectName(at.Child("secretRef", "name"), s.SecretRef.Name)...)
		}
		switch {
		case s.ConfigMapRef != nil && s.SecretRef != nil:
			faults = append(faults, field.Invalid(path, "", "may not have more than one field specified at a time"))
		case s.ConfigMapRef == nil && s.SecretRef == nil:
			faults = append(faults, field.Invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
		}
	}
	return faults
}

// objectName may end with a dash here, as in Kubernetes.
func objectName(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return required(path, name)
	}
	return invalid(path, name, apivalidation.NameIsDNSSubdomain(name, true))
}
