package nodeagent

import (
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/podspec"
)

// The part of the kubelet's stats/v1alpha1 Summary that the metrics server reads.
//
// Not yet: the node's own usage, network and volumes.
type statsSummary struct {
	Node nodeStats  `json:"node"`
	Pods []podStats `json:"pods"`
}

type nodeStats struct {
	NodeName  string      `json:"nodeName"`
	StartTime metav1.Time `json:"startTime"`
}

type podStats struct {
	PodRef     podReference     `json:"podRef"`
	StartTime  metav1.Time      `json:"startTime"`
	Containers []containerStats `json:"containers"`
}

type podReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
}

type containerStats struct {
	Name      string       `json:"name"`
	StartTime metav1.Time  `json:"startTime"`
	CPU       *cpuStats    `json:"cpu,omitempty"`
	Memory    *memoryStats `json:"memory,omitempty"`
}

type cpuStats struct {
	Time                 metav1.Time `json:"time"`
	UsageNanoCores       *uint64     `json:"usageNanoCores,omitempty"`
	UsageCoreNanoSeconds *uint64     `json:"usageCoreNanoSeconds,omitempty"`
}

type memoryStats struct {
	Time            metav1.Time `json:"time"`
	UsageBytes      *uint64     `json:"usageBytes,omitempty"`
	WorkingSetBytes *uint64     `json:"workingSetBytes,omitempty"`
	RSSBytes        *uint64     `json:"rssBytes,omitempty"`
}

// serveSummary answers with what the runtime measures.
func (a *Agent) serveSummary(w http.ResponseWriter, r *http.Request) {
	list, err := a.cri.ListContainerStats(r.Context(), &runtimeapi.ListContainerStatsRequest{
		Filter: &runtimeapi.ContainerStatsFilter{LabelSelector: map[string]string{podspec.LabelNode: a.cfg.NodeName}}})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	containers := map[string][]containerStats{}
	for _, s := range list.Stats {
		uid := s.GetAttributes().GetLabels()[podspec.LabelPodUID]
		containers[uid] = append(containers[uid], containerStats{
			Name: s.GetAttributes().GetMetadata().GetName(), CPU: cpuOf(s.Cpu), Memory: memoryOf(s.Memory)})
	}
	out := statsSummary{Node: nodeStats{NodeName: a.cfg.NodeName}, Pods: []podStats{}}
	for uid, pod := range a.pods.known() {
		if pod == nil {
			continue
		}
		p := podStats{PodRef: podReference{pod.Name, pod.Namespace, string(uid)}, StartTime: pod.CreationTimestamp, Containers: []containerStats{}}
		for _, c := range containers[string(uid)] {
			if s := containerStatus(pod, c.Name); s != nil && s.State.Running != nil {
				c.StartTime = s.State.Running.StartedAt
			}
			p.Containers = append(p.Containers, c)
		}
		out.Pods = append(out.Pods, p)
	}
	writeJSON(w, out)
}

func cpuOf(c *runtimeapi.CpuUsage) *cpuStats {
	if c == nil {
		return nil
	}
	return &cpuStats{metav1.NewTime(time.Unix(0, c.Timestamp)), value(c.UsageNanoCores), value(c.UsageCoreNanoSeconds)}
}

func memoryOf(m *runtimeapi.MemoryUsage) *memoryStats {
	if m == nil {
		return nil
	}
	return &memoryStats{metav1.NewTime(time.Unix(0, m.Timestamp)), value(m.UsageBytes), value(m.WorkingSetBytes), value(m.RssBytes)}
}

func value(v *runtimeapi.UInt64Value) *uint64 {
	if v == nil {
		return nil
	}
	return &v.Value
}
