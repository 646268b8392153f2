package dns

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Names of the indexes that the package adds to the informers.
const (
	byAddress = "dns/address" // Services and slices, by each of their addresses
	byService = "dns/service" // slices, by "namespace/service"
)

// cluster reads what the zone is made of.
type cluster struct {
	services, slices, namespaces cache.Indexer
	synced                       []cache.InformerSynced
}

// newCluster adds its indexes to the factory's informers, which must not have started.
func newCluster(factory informers.SharedInformerFactory) (cluster, error) {
	services := factory.Core().V1().Services().Informer()
	slices := factory.Discovery().V1().EndpointSlices().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	if err := services.AddIndexers(serviceIndexes); err != nil {
		return cluster{}, fmt.Errorf("dns: index of Services: %w", err)
	}
	if err := slices.AddIndexers(sliceIndexes); err != nil {
		return cluster{}, fmt.Errorf("dns: index of EndpointSlices: %w", err)
	}
	return cluster{
		services: services.GetIndexer(), slices: slices.GetIndexer(), namespaces: namespaces.GetIndexer(),
		synced: []cache.InformerSynced{services.HasSynced, slices.HasSynced, namespaces.HasSynced},
	}, nil
}

var serviceIndexes = cache.Indexers{
	byAddress: func(obj any) ([]string, error) {
		s := obj.(*corev1.Service)
		if isHeadless(s) {
			return nil, nil
		}
		return canonical(s.Spec.ClusterIPs), nil
	},
}

var sliceIndexes = cache.Indexers{
	byService: func(obj any) ([]string, error) {
		s := obj.(*discoveryv1.EndpointSlice)
		return []string{s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]}, nil
	},
	byAddress: func(obj any) (keys []string, _ error) {
		for _, e := range obj.(*discoveryv1.EndpointSlice).Endpoints {
			keys = append(keys, canonical(e.Addresses)...)
		}
		return keys, nil
	},
}

// canonical writes addresses as netip does, so that one address has one key; what is no address has none.
func canonical(addresses []string) (keys []string) {
	for _, text := range addresses {
		if address, err := netip.ParseAddr(text); err == nil {
			keys = append(keys, address.String())
		}
	}
	return keys
}

// ready says whether all has been listed once.
func (c *cluster) ready() bool {
	for _, synced := range c.synced {
		if !synced() {
			return false
		}
	}
	return true
}

func (c *cluster) hasNamespace(name string) bool {
	_, exists, _ := c.namespaces.GetByKey(name)
	return exists
}

// service returns a Service, nil if there is none.
func (c *cluster) service(namespace, name string) *corev1.Service {
	obj, exists, _ := c.services.GetByKey(namespace + "/" + name)
	if !exists {
		return nil
	}
	return obj.(*corev1.Service)
}

// servicesAt returns the Services that have an address.
func (c *cluster) servicesAt(address netip.Addr) (all []*corev1.Service) {
	objects, _ := c.services.ByIndex(byAddress, address.String())
	for _, obj := range objects {
		all = append(all, obj.(*corev1.Service))
	}
	return all
}

// slicesOf returns the EndpointSlices of a Service, also those that people made.
func (c *cluster) slicesOf(namespace, service string) []*discoveryv1.EndpointSlice {
	return c.slicesBy(byService, namespace+"/"+service)
}

// slicesAt returns the EndpointSlices that hold an address.
func (c *cluster) slicesAt(address netip.Addr) []*discoveryv1.EndpointSlice {
	return c.slicesBy(byAddress, address.String())
}

func (c *cluster) slicesBy(index, key string) (all []*discoveryv1.EndpointSlice) {
	objects, _ := c.slices.ByIndex(index, key)
	for _, obj := range objects {
		all = append(all, obj.(*discoveryv1.EndpointSlice))
	}
	return all
}
