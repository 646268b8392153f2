package ingress

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"kontiki/controllers/leader"
)

// NodeLabel marks the nodes whose machine serves Ingresses.
const NodeLabel = "kontiki.io/ingress"

// statusPeriod is how soon the status follows the nodes.
const statusPeriod = 2 * time.Second

// keepStatus makes the class, and keeps the addresses in the status of our Ingresses. One server does so.
func (s *server) keepStatus(ctx context.Context, synced []cache.InformerSynced) error {
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil
	}
	if !s.config.LeaderElect {
		return s.keepStatusAlone(ctx)
	}
	elector, err := leader.New(leader.Config{REST: s.config.REST, Name: "kontiki-ingress", Identity: s.config.Identity, Log: s.log})
	if err != nil {
		return err
	}
	if s.client, err = kubernetes.NewForConfig(elector.REST()); err != nil {
		return err
	}
	return elector.Run(ctx, s.keepStatusAlone)
}

func (s *server) keepStatusAlone(ctx context.Context) error {
	ticker := time.NewTicker(statusPeriod)
	defer ticker.Stop()
	for {
		if err := s.writeStatus(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("status of Ingresses not written", "err", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *server) writeStatus(ctx context.Context) error {
	if err := s.makeClass(ctx); err != nil {
		return err
	}
	addresses := s.addresses()
	for _, i := range s.ours() {
		if equality.Semantic.DeepEqual(i.Status.LoadBalancer.Ingress, addresses) {
			continue
		}
		next := i.DeepCopy()
		next.Status.LoadBalancer.Ingress = addresses
		_, err := s.client.NetworkingV1().Ingresses(i.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// makeClass makes the class if it is not there. One that somebody has changed stays as it is.
func (s *server) makeClass(ctx context.Context) error {
	if _, err := s.factory.Networking().V1().IngressClasses().Lister().Get(ClassName); err == nil {
		return nil
	}
	class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: ClassName}, Spec: networkingv1.IngressClassSpec{Controller: Controller}}
	if s.config.Default {
		class.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
	}
	_, err := s.client.NetworkingV1().IngressClasses().Create(ctx, class, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// addresses are those of the nodes that serve Ingresses and are ready.
func (s *server) addresses() (out []networkingv1.IngressLoadBalancerIngress) {
	list, _ := s.factory.Core().V1().Nodes().Lister().List(labels.SelectorFromSet(labels.Set{NodeLabel: "true"}))
	slices.SortFunc(list, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, n := range list {
		ready := false
		for _, c := range n.Status.Conditions {
			ready = ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}
		for _, a := range n.Status.Addresses {
			if ready && a.Type == corev1.NodeInternalIP {
				out = append(out, networkingv1.IngressLoadBalancerIngress{IP: a.Address})
			}
		}
	}
	return out
}
