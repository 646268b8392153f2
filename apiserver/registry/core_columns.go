package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

var namespaceColumns = columns([]string{"Name", "Status", "Age"})

func namespaceRow(ns *corev1.Namespace, now time.Time) []any {
	return []any{ns.Name, string(ns.Status.Phase), age(&ns.ObjectMeta, now)}
}

var configMapColumns = columns([]string{"Name", "Data", "Age"})

func configMapRow(c *corev1.ConfigMap, now time.Time) []any {
	return []any{c.Name, int64(len(c.Data) + len(c.BinaryData)), age(&c.ObjectMeta, now)}
}

var secretColumns = columns([]string{"Name", "Type", "Data", "Age"})

func secretRow(s *corev1.Secret, now time.Time) []any {
	return []any{s.Name, string(s.Type), int64(len(s.Data)), age(&s.ObjectMeta, now)}
}

var serviceAccountColumns = columns([]string{"Name", "Age"})

func serviceAccountRow(s *corev1.ServiceAccount, now time.Time) []any {
	return []any{s.Name, age(&s.ObjectMeta, now)}
}

var serviceColumns = columns([]string{"Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age"}, "Selector")

func serviceRow(s *corev1.Service, now time.Time) []any {
	clusterIP := none
	if len(s.Spec.ClusterIPs) > 0 {
		clusterIP = s.Spec.ClusterIPs[0]
	}
	var ports []string
	for _, p := range s.Spec.Ports {
		port := strconv.Itoa(int(p.Port))
		if p.NodePort > 0 {
			port = fmt.Sprintf("%d:%d", p.Port, p.NodePort)
		}
		ports = append(ports, port+"/"+string(p.Protocol))
	}
	return []any{
		s.Name, string(s.Spec.Type), clusterIP, externalIP(s), orElse(strings.Join(ports, ","), none), age(&s.ObjectMeta, now),
		labels.FormatLabels(s.Spec.Selector),
	}
}

func externalIP(s *corev1.Service) string {
	switch s.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		var list []string
		for _, in := range s.Status.LoadBalancer.Ingress {
			list = append(list, cmp.Or(in.IP, in.Hostname))
		}
		slices.Sort(list)
		return orElse(strings.Join(append(list, s.Spec.ExternalIPs...), ","), "<pending>")
	}
	return orElse(strings.Join(s.Spec.ExternalIPs, ","), none)
}

var nodeColumns = columns(
	[]string{"Name", "Status", "Roles", "Age", "Version"},
	"Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime")

func nodeRow(n *corev1.Node, now time.Time) []any {
	info := n.Status.NodeInfo
	kernel := orElse(info.KernelVersion, unknown)
	if info.Architecture != "" {
		kernel += " (" + info.Architecture + ")"
	}
	return []any{
		n.Name, nodeStatus(n), orElse(strings.Join(nodeRoles(n), ","), none), age(&n.ObjectMeta, now), info.KubeletVersion,
		nodeAddress(n, corev1.NodeInternalIP), nodeAddress(n, corev1.NodeExternalIP),
		orElse(info.OSImage, unknown), kernel, orElse(info.ContainerRuntimeVersion, unknown),
	}
}

func nodeStatus(n *corev1.Node) string {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			status = "NotReady"
			if c.Status == corev1.ConditionTrue {
				status = "Ready"
			}
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

// nodeRoles: "node-role.kubernetes.io/ROLE" is the label of today, "kubernetes.io/role: ROLE" that of old.
func nodeRoles(n *corev1.Node) []string {
	var roles []string
	for key, value := range n.Labels {
		if role, ok := strings.CutPrefix(key, "node-role.kubernetes.io/"); ok && role != "" {
			roles = append(roles, role)
		} else if key == "kubernetes.io/role" && value != "" {
			roles = append(roles, value)
		}
	}
	slices.Sort(roles)
	return slices.Compact(roles)
}

func nodeAddress(n *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return none
}

// eventColumns has wide columns in the middle, so it is spelled out.
var eventColumns = []metav1.TableColumnDefinition{
	column("Last Seen", 0), column("Type", 0), column("Reason", 0), column("Object", 0), column("Subobject", 1),
	column("Source", 1), column("Message", 0), column("First Seen", 1), column("Count", 1), column("Name", 1),
}

func eventRow(e *corev1.Event, now time.Time) []any {
	first := e.FirstTimestamp
	if first.IsZero() {
		first = metav1.Time(e.EventTime)
	}
	last, count := e.LastTimestamp, max(e.Count, 1)
	if last.IsZero() {
		last = first
	}
	if e.Series != nil {
		last, count = metav1.Time(e.Series.LastObservedTime), e.Series.Count
	}
	object := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Name != "" {
		object += "/" + e.InvolvedObject.Name
	}
	source := cmp.Or(e.Source.Component, e.ReportingController)
	if instance := cmp.Or(e.Source.Host, e.ReportingInstance); instance != "" {
		source += ", " + instance
	}
	return []any{
		since(last, now), e.Type, e.Reason, object, e.InvolvedObject.FieldPath,
		source, strings.TrimSpace(e.Message), since(first, now), int64(count), e.Name,
	}
}
