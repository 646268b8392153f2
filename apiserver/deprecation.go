package apiserver

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/registry"
)

// warnDeprecated tells a client that asks for a kind which Kubernetes advises against, and for which one to ask instead.
// The types of k8s.io/api say so themselves. (Kubernetes deprecation policy, "Rule #4b".)
func warnDeprecated(ctx context.Context, r *registry.Resource) {
	if r.Deprecated != "" {
		warn(ctx, r.Deprecated)
		return
	}
	kind := r.New()
	deprecated, ok := kind.(interface{ APILifecycleDeprecated() (int, int) })
	if !ok {
		return
	}
	major, minor := deprecated.APILifecycleDeprecated()
	if major == 0 {
		return
	}
	text := fmt.Sprintf("%s %s is deprecated in v%d.%d+", r.GroupVersion(), r.Kind, major, minor)
	if removed, ok := kind.(interface{ APILifecycleRemoved() (int, int) }); ok {
		if major, minor := removed.APILifecycleRemoved(); major > 0 {
			text += fmt.Sprintf(", unavailable in v%d.%d+", major, minor)
		}
	}
	if replaced, ok := kind.(interface {
		APILifecycleReplacement() schema.GroupVersionKind
	}); ok {
		if other := replaced.APILifecycleReplacement(); !other.Empty() {
			text += fmt.Sprintf("; use %s %s", other.GroupVersion(), other.Kind)
		}
	}
	warn(ctx, text)
}
