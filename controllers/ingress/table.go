package ingress

import (
	"cmp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"
)

const (
	// ClassName is the IngressClass that the server makes.
	ClassName = "kontiki"
	// Controller is its spec.controller: classes of other names may have it, too.
	Controller = "kontiki.io/ingress"
	// legacyClassAnnotation is how Ingresses named their class before there were any.
	legacyClassAnnotation = "kubernetes.io/ingress.class"
	// redirectAnnotation with the value "false" has a host with a certificate answer plain HTTP, too.
	redirectAnnotation = "kontiki.io/ssl-redirect"
)

// rule leads the requests for some paths to a backend.
type rule struct {
	path    string // of a prefix without the last slash
	exact   bool
	backend backend
	secure  bool // plain HTTP is led to HTTPS
}

// table is all rules of one moment. It does not change.
type table struct {
	hosts    map[string][]rule // by host, "*.domain", or "" for all; the rules in the order in which they are tried
	fallback *backend
	secrets  map[string]string // namespace/name of the Secret with a host's certificate; keys as in hosts
}

// ours says whether an Ingress is this controller's to serve.
func ours(i *networkingv1.Ingress, classes map[string]bool) bool {
	if name := i.Spec.IngressClassName; name != nil {
		return classes[*name]
	}
	return i.Annotations[legacyClassAnnotation] == ClassName
}

// newTable makes the table of the Ingresses that are ours.
func newTable(ingresses []*networkingv1.Ingress) *table {
	t := &table{hosts: map[string][]rule{}, secrets: map[string]string{}}
	slices.SortFunc(ingresses, func(a, b *networkingv1.Ingress) int { // the older first
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, i := range ingresses {
		for _, block := range i.Spec.TLS {
			for _, host := range block.Hosts {
				if _, taken := t.secrets[host]; !taken && block.SecretName != "" {
					t.secrets[host] = i.Namespace + "/" + block.SecretName
				}
			}
		}
		t.add(i)
	}
	for _, rules := range t.hosts {
		slices.SortStableFunc(rules, func(a, b rule) int {
			if a.exact != b.exact && len(a.path) == len(b.path) {
				return cmp.Compare(rank(a), rank(b))
			}
			return cmp.Compare(len(b.path), len(a.path))
		})
	}
	return t
}

// rank puts exact paths before others of their length.
func rank(r rule) int {
	if r.exact {
		return 0
	}
	return 1
}

func (t *table) add(i *networkingv1.Ingress) {
	for _, r := range i.Spec.Rules {
		if r.HTTP == nil {
			continue
		}
		for _, p := range r.HTTP.Paths {
			path, exact := cmp.Or(p.Path, "/"), ptr.Deref(p.PathType, "") == networkingv1.PathTypeExact
			if !exact {
				path = strings.TrimSuffix(path, "/")
			}
			t.hosts[r.Host] = append(t.hosts[r.Host], rule{
				path: path, exact: exact,
				backend: backendOf(i.Namespace, &p.Backend), secure: isSecure(i, r.Host),
			})
		}
	}
	if i.Spec.DefaultBackend != nil && t.fallback == nil {
		b := backendOf(i.Namespace, i.Spec.DefaultBackend)
		t.fallback = &b
	}
}

// isSecure says whether an Ingress has a certificate for a host of its.
func isSecure(i *networkingv1.Ingress, host string) bool {
	return i.Annotations[redirectAnnotation] != "false" && slices.ContainsFunc(i.Spec.TLS, func(t networkingv1.IngressTLS) bool {
		return slices.ContainsFunc(t.Hosts, func(h string) bool { return h == host || h == wildcardOf(host) })
	})
}

// wildcardOf is the wildcard that a host falls under.
func wildcardOf(host string) string {
	_, domain, ok := strings.Cut(host, ".")
	if !ok {
		return ""
	}
	return "*." + domain
}

// find returns the rule of a request; one of the fallback if there is no other, nil without.
func (t *table) find(host, path string) *rule {
	host = strings.ToLower(host)
	for _, h := range []string{host, wildcardOf(host), ""} {
		rules, ok := t.hosts[h]
		if !ok {
			continue
		}
		for i := range rules {
			if rules[i].matches(path) {
				return &rules[i]
			}
		}
		break // the host has its rules, and no other's
	}
	if t.fallback == nil {
		return nil
	}
	return &rule{backend: *t.fallback}
}

// matches says whether a path is the rule's, or begins with its elements.
func (r *rule) matches(path string) bool {
	if r.exact {
		return path == r.path
	}
	rest, ok := strings.CutPrefix(path, r.path)
	return ok && (rest == "" || rest[0] == '/')
}

// secretOf names the Secret with the certificate for a host; "" if there is none.
func (t *table) secretOf(host string) string {
	host = strings.ToLower(host)
	return cmp.Or(t.secrets[host], t.secrets[wildcardOf(host)])
}
