package podspec

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Sources gives the ConfigMaps and Secrets that pods refer to. An absent one is an API not-found error.
type Sources interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// environment collects variables: the first set keeps its place, the last set its value.
type environment struct {
	names  []string
	values map[string]string
	links  map[string]string // service links: known to $(…), weaker than every declared variable
}

func (e *environment) set(name, value string) {
	if _, ok := e.values[name]; !ok {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

func (e *environment) lookup(name string) (string, bool) {
	if v, ok := e.values[name]; ok {
		return v, true
	}
	v, ok := e.links[name]
	return v, ok
}

func (e *environment) list() []*runtimeapi.KeyValue {
	out := make([]*runtimeapi.KeyValue, 0, len(e.names)+len(e.links))
	for _, name := range e.names {
		out = append(out, &runtimeapi.KeyValue{Key: name, Value: []byte(e.values[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(e.links)) {
		if _, ok := e.values[name]; !ok {
			out = append(out, &runtimeapi.KeyValue{Key: name, Value: []byte(e.links[name])})
		}
	}
	return out
}

// newEnvironment evaluates envFrom, then env in its order, above the service links.
func newEnvironment(
	ctx context.Context, pod *corev1.Pod, c *corev1.Container, facts Facts, links map[string]string, src Sources,
) (*environment, error) {
	e := &environment{values: map[string]string{}, links: links}
	for i := range c.EnvFrom {
		if err := e.from(ctx, pod.Namespace, &c.EnvFrom[i], src); err != nil {
			return nil, err
		}
	}
	for i := range c.Env {
		v := &c.Env[i]
		if v.ValueFrom == nil {
			e.set(v.Name, Expand(v.Value, e.lookup))
			continue
		}
		value, ok, err := resolve(ctx, pod, c, facts, v.ValueFrom, src)
		if err != nil {
			return nil, err
		}
		if ok {
			e.set(v.Name, value)
		}
	}
	return e, nil
}

// from adds every key of a ConfigMap or Secret.
func (e *environment) from(ctx context.Context, namespace string, f *corev1.EnvFromSource, src Sources) error {
	switch {
	case f.ConfigMapRef != nil:
		cm, err := src.ConfigMap(ctx, namespace, f.ConfigMapRef.Name)
		if missing(err) && isTrue(f.ConfigMapRef.Optional) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, k := range slices.Sorted(maps.Keys(cm.Data)) {
			e.set(f.Prefix+k, cm.Data[k])
		}
	case f.SecretRef != nil:
		s, err := src.Secret(ctx, namespace, f.SecretRef.Name)
		if missing(err) && isTrue(f.SecretRef.Optional) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, k := range slices.Sorted(maps.Keys(s.Data)) {
			e.set(f.Prefix+k, string(s.Data[k]))
		}
	}
	return nil
}

// resolve evaluates one valueFrom. ok is false when an optional source or key is absent.
func resolve(
	ctx context.Context, pod *corev1.Pod, c *corev1.Container, facts Facts, from *corev1.EnvVarSource, src Sources,
) (value string, ok bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = FieldRef(pod, facts, from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.ResourceFieldRef != nil:
		value, err = ResourceFieldRef(pod, facts, c.Name, from.ResourceFieldRef)
		return value, err == nil, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		cm, err := src.ConfigMap(ctx, pod.Namespace, ref.Name)
		if err != nil {
			return "", false, unlessOptional(err, ref.Optional)
		}
		if value, ok = cm.Data[ref.Key]; !ok && !isTrue(ref.Optional) {
			err = fmt.Errorf("couldn't find key %v in ConfigMap %v/%v", ref.Key, pod.Namespace, ref.Name)
		}
		return value, ok, err
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		s, err := src.Secret(ctx, pod.Namespace, ref.Name)
		if err != nil {
			return "", false, unlessOptional(err, ref.Optional)
		}
		data, ok := s.Data[ref.Key]
		if !ok && !isTrue(ref.Optional) {
			err = fmt.Errorf("couldn't find key %v in Secret %v/%v", ref.Key, pod.Namespace, ref.Name)
		}
		return string(data), ok, err
	}
	return "", false, nil
}

func unlessOptional(err error, optional *bool) error {
	if missing(err) && isTrue(optional) {
		return nil
	}
	return err
}

func missing(err error) bool { return apierrors.IsNotFound(err) }

func isTrue(b *bool) bool { return b != nil && *b }

// ServiceLinks are the docker-link style variables for the services that a pod sees: those of its
// namespace if it wants them, and always the API server's own.
func ServiceLinks(pod *corev1.Pod, services []*corev1.Service) map[string]string {
	wanted := pod.Spec.EnableServiceLinks == nil || *pod.Spec.EnableServiceLinks
	out := map[string]string{}
	for _, s := range services {
		master := s.Namespace == corev1.NamespaceDefault && s.Name == "kubernetes"
		if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == corev1.ClusterIPNone || len(s.Spec.Ports) == 0 {
			continue
		}
		if master && (pod.Namespace != s.Namespace || !wanted) || wanted && s.Namespace == pod.Namespace {
			addLinks(out, s)
		}
	}
	return out
}

func addLinks(out map[string]string, s *corev1.Service) {
	name := envName(s.Name)
	host := s.Spec.ClusterIP
	out[name+"_SERVICE_HOST"] = host
	out[name+"_SERVICE_PORT"] = fmt.Sprint(s.Spec.Ports[0].Port)
	for i, p := range s.Spec.Ports {
		if p.Name != "" {
			out[name+"_SERVICE_PORT_"+envName(p.Name)] = fmt.Sprint(p.Port)
		}
		protocol := strings.ToLower(string(p.Protocol))
		if protocol == "" {
			protocol = "tcp"
		}
		address := host
		if strings.Contains(host, ":") {
			address = "[" + host + "]"
		}
		link := fmt.Sprintf("%s://%s:%d", protocol, address, p.Port)
		if i == 0 {
			out[name+"_PORT"] = link
		}
		prefix := fmt.Sprintf("%s_PORT_%d_%s", name, p.Port, strings.ToUpper(protocol))
		out[prefix] = link
		out[prefix+"_PROTO"] = protocol
		out[prefix+"_PORT"] = fmt.Sprint(p.Port)
		out[prefix+"_ADDR"] = host
	}
}

func envName(s string) string { return strings.ToUpper(strings.ReplaceAll(s, "-", "_")) }
