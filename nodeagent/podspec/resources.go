package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CFS bandwidth control as Kubernetes uses it: quota per period of 100 ms, at least 1 ms.
const (
	cpuPeriodMicroseconds = 100_000
	minQuotaMicroseconds  = 1_000
	minShares             = 2
	maxShares             = 262_144
)

// QOSClass of a pod: Guaranteed when every container's limits equal its requests for both CPU and
// memory, BestEffort when nothing is asked at all, Burstable otherwise.
func QOSClass(pod *corev1.Pod) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	guaranteed, bestEffort := true, true
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				limit, limited := list[i].Resources.Limits[name]
				request, requested := list[i].Resources.Requests[name]
				if limited && !limit.IsZero() || requested && !request.IsZero() {
					bestEffort = false
				}
				if !limited || limit.IsZero() || requested && limit.Cmp(request) != 0 {
					guaranteed = false
				}
			}
		}
	}
	switch {
	case bestEffort:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// systemCriticalPriority is where the system priority classes begin (system-cluster-critical).
const systemCriticalPriority = 2_000_000_000

// oomScoreAdj says whom the kernel kills first when the node has no memory left: BestEffort pods,
// then Burstable ones by how far they may exceed their request, Guaranteed and critical ones last.
func oomScoreAdj(pod *corev1.Pod, c *corev1.Container, memoryCapacity int64) int64 {
	if pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCriticalPriority {
		return -997
	}
	switch QOSClass(pod) {
	case corev1.PodQOSGuaranteed:
		return -997
	case corev1.PodQOSBestEffort:
		return 1000
	}
	if memoryCapacity <= 0 {
		return 999
	}
	adj := 1000 - 1000*c.Resources.Requests.Memory().Value()/memoryCapacity
	return min(max(adj, 3), 999)
}

// ContainerResources are the cgroup settings of one container.
func ContainerResources(pod *corev1.Pod, c *corev1.Container, memoryCapacity int64) *runtimeapi.LinuxContainerResources {
	r := cgroupResources(c.Resources.Requests, c.Resources.Limits)
	r.OomScoreAdj = oomScoreAdj(pod, c, memoryCapacity)
	return r
}

// PodResources are the settings of the pod's own cgroup. A limit applies only if every container has one.
func PodResources(pod *corev1.Pod) *runtimeapi.LinuxContainerResources {
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{ExcludeOverhead: true})
	limits := resource.PodLimits(pod, resource.PodResourcesOptions{ExcludeOverhead: true})
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		for i := range pod.Spec.Containers {
			if _, ok := pod.Spec.Containers[i].Resources.Limits[name]; !ok {
				delete(limits, name)
			}
		}
	}
	return cgroupResources(requests, limits)
}

func cgroupResources(requests, limits corev1.ResourceList) *runtimeapi.LinuxContainerResources {
	request := requests.Cpu().MilliValue()
	if _, ok := requests[corev1.ResourceCPU]; !ok {
		request = limits.Cpu().MilliValue()
	}
	r := &runtimeapi.LinuxContainerResources{
		CpuPeriod:          cpuPeriodMicroseconds,
		CpuShares:          min(max(request*1024/1000, minShares), maxShares),
		MemoryLimitInBytes: limits.Memory().Value(),
	}
	if milli := limits.Cpu().MilliValue(); milli > 0 {
		r.CpuQuota = max(milli*cpuPeriodMicroseconds/1000, minQuotaMicroseconds)
	}
	return r
}
