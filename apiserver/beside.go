package apiserver

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/admission"
	"kontiki/apiserver/storage"
)

// besides is what admission writes together with one object: the quotas that it is charged to. It belongs to one
// request. The objects are held from the moment they are charged until the write is over, so that of all who create something
// in a namespace with a quota none starts from a figure that another one is about to change.
type besides struct {
	s       *Server
	held    []*storage.Beside
	request *admission.Request // that was charged last; nil: none
}

// charge has admission charge the request. What was held for an earlier attempt is let go first: several are taken in
// order, or two requests could wait for each other.
func (b *besides) charge(ctx context.Context, request *admission.Request) error {
	b.end()
	b.request = request
	if !request.DryRun {
		request.Beside = b.take
	}
	return b.s.admission.Charge(ctx, request)
}

// again charges the same request anew.
func (b *besides) again(ctx context.Context) error { return b.charge(ctx, b.request) }

func (b *besides) take(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (admission.Companion, error) {
	one, err := b.s.storeOf(b.s.table.Lookup(resource)).Beside(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	b.held = append(b.held, one)
	return one, nil
}

// written are those that are to be written.
func (b *besides) written() []*storage.Beside {
	var out []*storage.Beside
	for _, one := range b.held {
		if one.Changed() {
			out = append(out, one)
		}
	}
	return out
}

// end lets go of all.
func (b *besides) end() {
	for _, one := range b.held {
		one.End()
	}
	b.held = nil
}
