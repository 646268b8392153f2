package apiclient

import (
	"context"
	"net"
	"strconv"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// follow learns the live servers from the endpoints of the Service default/kubernetes, until ctx ends.
func (s *Servers) follow(ctx context.Context, config *rest.Config) {
	client, err := kubernetes.NewForConfig(Config(config, "kontiki/servers"))
	if err != nil {
		s.log.Warn("the cluster's API servers cannot be followed", "err", err)
		return
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(metav1.NamespaceDefault),
		informers.WithTransform(DropManagedFields),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = discoveryv1.LabelServiceName + "=kubernetes" }))
	slices := factory.Discovery().V1().EndpointSlices()
	changed := make(chan struct{}, 1)
	tell := func() {
		select {
		case changed <- struct{}{}:
		default: // the reader will see this change, too
		}
	}
	_, err = slices.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { tell() }, UpdateFunc: func(any, any) { tell() }, DeleteFunc: func(any) { tell() },
	})
	if err != nil {
		s.log.Warn("the cluster's API servers cannot be followed", "err", err)
		return
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), slices.Informer().HasSynced) {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		if all, err := slices.Lister().List(labels.Everything()); err == nil {
			s.learn(URLs(all))
		}
	}
}

// URLs are the servers that slices of endpoints name.
func URLs(slices []*discoveryv1.EndpointSlice) (urls []string) {
	for _, slice := range slices {
		if len(slice.Ports) == 0 || slice.Ports[0].Port == nil {
			continue
		}
		for _, e := range slice.Endpoints {
			if ready := e.Conditions.Ready; ready != nil && !*ready {
				continue
			}
			for _, address := range e.Addresses {
				urls = append(urls, "https://"+net.JoinHostPort(address, strconv.Itoa(int(*slice.Ports[0].Port))))
			}
		}
	}
	return urls
}
