package quota

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// amounts reads "cpu=1,memory=1Gi".
func amounts(text string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		name, amount, _ := strings.Cut(part, "=")
		out[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return out
}

func pod(requests, limits string) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Resources: corev1.ResourceRequirements{Requests: amounts(requests), Limits: amounts(limits)},
	}}}}
}

func quotaOf(hard, used string) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}}
	q.Spec.Hard = amounts(hard)
	q.Status = corev1.ResourceQuotaStatus{Hard: amounts(hard), Used: amounts(used)}
	return q
}

// What objects of each resource use.
func TestUsage(t *testing.T) {
	ended := pod("cpu=1", "")
	ended.Status.Phase = corev1.PodFailed
	lost := pod("cpu=1", "")
	lost.DeletionTimestamp, lost.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(now.Add(-time.Minute))), ptr.To(int64(30))
	ending := lost.DeepCopy()
	ending.DeletionGracePeriodSeconds = ptr.To(int64(90))
	claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: ptr.To("gold"), Resources: corev1.VolumeResourceRequirements{Requests: amounts("storage=1500m")},
	}}
	grown := claim.DeepCopy()
	grown.Status.AllocatedResources = amounts("storage=1Gi")
	service := func(kind corev1.ServiceType, allocate *bool, ports ...int32) *corev1.Service {
		s := &corev1.Service{Spec: corev1.ServiceSpec{Type: kind, AllocateLoadBalancerNodePorts: allocate}}
		for _, p := range ports {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: 80, NodePort: p})
		}
		return s
	}
	devices := &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2}},
		{FirstAvailable: []resourcev1.DeviceSubRequest{
			{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 3},
			{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
			{DeviceClassName: "nic", AllocationMode: resourcev1.DeviceAllocationModeAll},
		}},
	}}}}
	for name, c := range map[string]struct {
		resource schema.GroupResource
		obj      runtime.Object
		uses     string
	}{
		"pod": {corev1.Resource("pods"), pod("cpu=100m,memory=1Gi,hugepages-2Mi=4Mi,example.com/gpu=2", "cpu=1,ephemeral-storage=1Gi"),
			"count/pods=1,cpu=100m,hugepages-2Mi=4Mi,limits.cpu=1,limits.ephemeral-storage=1Gi,memory=1Gi,pods=1,requests.cpu=100m,requests.example.com/gpu=2,requests.hugepages-2Mi=4Mi,requests.memory=1Gi"},
		"pod that has ended":         {corev1.Resource("pods"), ended, "count/pods=1"},
		"pod of a lost node":         {corev1.Resource("pods"), lost, "count/pods=1"},
		"pod that is ending":         {corev1.Resource("pods"), ending, "count/pods=1,cpu=1,pods=1,requests.cpu=1"},
		"claim, in whole bytes":      {corev1.Resource("persistentvolumeclaims"), claim, "count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/requests.storage=2,persistentvolumeclaims=1,requests.storage=2"},
		"claim that could not grow":  {corev1.Resource("persistentvolumeclaims"), grown, "count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/requests.storage=1Gi,persistentvolumeclaims=1,requests.storage=1Gi"},
		"service":                    {corev1.Resource("services"), service(corev1.ServiceTypeClusterIP, nil, 0), "count/services=1,services=1"},
		"service with node ports":    {corev1.Resource("services"), service(corev1.ServiceTypeNodePort, nil, 0, 0), "count/services=1,services=1,services.nodeports=2"},
		"load balancer":              {corev1.Resource("services"), service(corev1.ServiceTypeLoadBalancer, nil, 0), "count/services=1,services=1,services.loadbalancers=1,services.nodeports=1"},
		"load balancer without them": {corev1.Resource("services"), service(corev1.ServiceTypeLoadBalancer, ptr.To(false), 0, 30000), "count/services=1,services=1,services.loadbalancers=1,services.nodeports=1"},
		"devices, the worst case":    {resourcev1.Resource("resourceclaims"), devices, "count/resourceclaims.resource.k8s.io=1,gpu.deviceclass.resource.k8s.io/devices=5,nic.deviceclass.resource.k8s.io/devices=32"},
		"secret":                     {corev1.Resource("secrets"), &corev1.Secret{}, "count/secrets=1,secrets=1"},
		"anything else":              {schema.GroupResource{Group: "example.com", Resource: "widgets"}, &corev1.Secret{}, "count/widgets.example.com=1"},
	} {
		m := Of(c.resource)
		uses := m.usage(c.obj, now)
		require.Equal(t, c.uses, text(uses), name)
		for used := range uses {
			require.True(t, m.tracks(used), "%s: %s", name, used)
		}
	}
	require.Nil(t, Of(corev1.Resource("events")))
}

func TestScopes(t *testing.T) {
	brief, critical, apart := pod("cpu=1", ""), pod("", ""), pod("cpu=1", "")
	brief.Spec.ActiveDeadlineSeconds = ptr.To(int64(1))
	critical.Spec.PriorityClassName = "high"
	apart.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
		{PodAffinityTerm: corev1.PodAffinityTerm{Namespaces: []string{"other"}}},
	}}}
	claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeAttributesClassName: ptr.To("fast")}}
	claim.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: "faster"}
	pods, claims := Of(corev1.Resource("pods")), Of(corev1.Resource("persistentvolumeclaims"))
	for _, c := range []struct {
		measure  *Measure
		obj      runtime.Object
		scope    corev1.ResourceQuotaScope
		operator corev1.ScopeSelectorOperator
		values   []string
		in       bool
	}{
		{pods, brief, "Terminating", "Exists", nil, true},
		{pods, critical, "Terminating", "Exists", nil, false},
		{pods, critical, "NotTerminating", "Exists", nil, true},
		{pods, critical, "BestEffort", "Exists", nil, true},
		{pods, brief, "BestEffort", "Exists", nil, false},
		{pods, brief, "NotBestEffort", "Exists", nil, true},
		{pods, critical, "PriorityClass", "Exists", nil, true},
		{pods, brief, "PriorityClass", "Exists", nil, false},
		{pods, brief, "PriorityClass", "DoesNotExist", nil, true},
		{pods, critical, "PriorityClass", "In", []string{"high", "low"}, true},
		{pods, critical, "PriorityClass", "NotIn", []string{"high", "low"}, false},
		{pods, brief, "PriorityClass", "NotIn", []string{"high"}, true},
		{pods, apart, "CrossNamespacePodAffinity", "Exists", nil, true},
		{pods, brief, "CrossNamespacePodAffinity", "Exists", nil, false},
		{pods, brief, "VolumeAttributesClass", "Exists", nil, false},
		{claims, claim, "VolumeAttributesClass", "In", []string{"faster"}, true},
		{claims, claim, "VolumeAttributesClass", "In", []string{"slow"}, false},
		{claims, claim, "Terminating", "Exists", nil, false},
		{Of(corev1.Resource("secrets")), &corev1.Secret{}, "Terminating", "Exists", nil, false},
	} {
		spec := &corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: c.scope, Operator: c.operator, Values: c.values},
		}}}
		require.Equal(t, c.in, c.measure.covers(spec, c.obj), "%+v", c)
		if c.operator == corev1.ScopeSelectorOpExists {
			require.Equal(t, c.in, c.measure.covers(&corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{c.scope}}, c.obj), "%+v", c)
		}
	}
}

func TestCharge(t *testing.T) {
	m := Of(corev1.Resource("pods"))
	for name, c := range map[string]struct {
		q       *corev1.ResourceQuota
		use     Use
		used    string
		message string
	}{
		"what it asks for":       {quotaOf("pods=2,cpu=1,services=1", "pods=1,cpu=500m,services=1"), Use{Object: pod("cpu=500m", "")}, "cpu=1,pods=2,services=1", ""},
		"of several too much":    {quotaOf("pods=1,cpu=1,memory=1Gi", "pods=1,cpu=1,memory=0"), Use{Object: pod("cpu=1,memory=1Gi", "")}, "", "exceeded quota: q, requested: cpu=1,pods=1, used: cpu=1,pods=1, limited: cpu=1,pods=1"},
		"does not concern pods":  {quotaOf("services=1", "services=1"), Use{Object: pod("", "")}, "", ""},
		"says too little":        {quotaOf("limits.cpu=1,requests.memory=1Gi,requests.example.com/gpu=0", ""), Use{Object: pod("", "")}, "", "failed quota: q: must specify limits.cpu for: c; requests.memory for: c"},
		"is not counted yet":     {quotaOf("pods=1", ""), Use{Object: pod("", "")}, "", "status unknown for quota: q, resources: pods"},
		"grows":                  {quotaOf("cpu=2", "cpu=1"), Use{Subresource: "resize", Object: pod("cpu=1500m", ""), Old: pod("cpu=1", "")}, "cpu=1500m", ""},
		"shrinks":                {quotaOf("cpu=2", "cpu=1"), Use{Subresource: "resize", Object: pod("cpu=500m", ""), Old: pod("cpu=1", "")}, "", ""},
		"is over already, grows": {quotaOf("cpu=1", "cpu=3"), Use{Subresource: "resize", Object: pod("cpu=2", ""), Old: pod("cpu=1", "")}, "", "exceeded quota: q, requested: cpu=1, used: cpu=3, limited: cpu=1"},
		"asks for less than nil": {quotaOf("cpu=1", "cpu=0"), Use{Object: pod("cpu=-1", "")}, "", "quota usage is negative for resource(s): cpu,requests.cpu"},
	} {
		c.use.Now = now
		require.True(t, m.Counts(c.use), name)
		used, err := m.Charge(c.q, c.use)
		if c.message != "" {
			require.EqualError(t, err, c.message, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.used, text(used), name)
	}
	require.False(t, m.Counts(Use{Subresource: "binding", Object: &corev1.Binding{}}))
	require.False(t, m.Counts(Use{Object: pod("", ""), Old: pod("", "")}), "an update that moves it into no other scope")
}

// What admission charges one by one is what the controller counts in the end.
func TestRecountIsTheSumOfCharges(t *testing.T) {
	q := quotaOf("pods=9,requests.memory=9Gi,count/pods=9", "pods=0,requests.memory=0,count/pods=0")
	m := Of(corev1.Resource("pods"))
	var all []runtime.Object
	for range 3 {
		p := pod("memory=1Gi", "")
		used, err := m.Charge(q, Use{Object: p, Now: now})
		require.NoError(t, err)
		q.Status.Used = used
		all = append(all, p)
	}
	names := For(q.Spec.Hard)[m]
	require.Len(t, names, 3)
	require.False(t, m.CountsOnly(q, names))
	require.True(t, m.CountsOnly(q, []corev1.ResourceName{"count/pods"}))
	require.True(t, Equal(q.Status.Used, m.Recount(q, names, all, now)))
	ended := all[0].DeepCopyObject().(*corev1.Pod)
	ended.Status.Phase = corev1.PodSucceeded
	require.True(t, m.Frees(q, all[0], ended, now))
	require.False(t, m.Frees(q, all[0], all[0], now))
}
