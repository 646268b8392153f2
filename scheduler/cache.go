package scheduler

import (
	"cmp"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podInfo is a pod with what the filters ask for, computed once.
type podInfo struct {
	*corev1.Pod
	request amounts
	scored  amounts
	ports   []hostPort
}

func newPodInfo(pod *corev1.Pod) *podInfo {
	return &podInfo{Pod: pod, request: podRequest(pod), scored: podScoredRequest(pod), ports: hostPorts(pod)}
}

// nodeInfo is a node with what its pods use. node is nil for a name that pods are bound to but no Node has (yet).
type nodeInfo struct {
	name        string
	node        *corev1.Node
	allocatable amounts
	pods        map[types.UID]*podInfo
	used        amounts
	usedScored  amounts
}

// cache knows every node and every pod that holds resources on one, including pods whose binding is still under way.
//
// The one subtle thing is the assumed pod. Between the decision and the informer's confirmation lie milliseconds in which
// the next pod is decided; without the assumption both would get the same last CPU.
type cache struct {
	mu    sync.Mutex // guards everything below; a leaf: nothing else is locked while it is held
	nodes map[string]*nodeInfo
	// where says on which node a pod is counted.
	where map[types.UID]string
}

func newCache() *cache {
	return &cache{nodes: map[string]*nodeInfo{}, where: map[types.UID]string{}}
}

// node returns the entry of a name, making one if needed. Call with mu held.
func (c *cache) node(name string) *nodeInfo {
	info := c.nodes[name]
	if info == nil {
		info = &nodeInfo{name: name, pods: map[types.UID]*podInfo{}, used: amounts{}, usedScored: amounts{}}
		c.nodes[name] = info
	}
	return info
}

func (c *cache) setNode(node *corev1.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info := c.node(node.Name)
	info.node, info.allocatable = node, amountsOf(node.Status.Allocatable)
}

// removeNode keeps the entry while pods are bound to the name: should the node come back, they still count.
func (c *cache) removeNode(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if info := c.nodes[name]; info != nil {
		info.node, info.allocatable = nil, nil
		c.dropIfEmpty(info)
	}
}

// setPod counts a pod on the node, in place of what was known of it. It serves for assumptions as well as for what the
// informer reports, which confirms or corrects them.
func (c *cache) setPod(pod *corev1.Pod, node string) {
	info := newPodInfo(pod)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(pod.UID)
	n := c.node(node)
	n.pods[pod.UID] = info
	n.used.add(info.request)
	n.usedScored.add(info.scored)
	c.where[pod.UID] = node
}

// removePod says whether the pod was counted anywhere.
func (c *cache) removePod(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.remove(uid)
}

func (c *cache) remove(uid types.UID) bool {
	name, counted := c.where[uid]
	if !counted {
		return false
	}
	n := c.nodes[name]
	info := n.pods[uid]
	n.used.sub(info.request)
	n.usedScored.sub(info.scored)
	delete(n.pods, uid)
	delete(c.where, uid)
	c.dropIfEmpty(n)
	return true
}

func (c *cache) dropIfEmpty(info *nodeInfo) {
	if info.node == nil && len(info.pods) == 0 {
		delete(c.nodes, info.name)
	}
}

// view calls look with the present nodes, sorted by name. Nothing changes meanwhile, and look must not keep them.
func (c *cache) view(look func(nodes []*nodeInfo)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	nodes := make([]*nodeInfo, 0, len(c.nodes))
	for _, info := range c.nodes {
		if info.node != nil {
			nodes = append(nodes, info)
		}
	}
	slices.SortFunc(nodes, func(a, b *nodeInfo) int { return cmp.Compare(a.name, b.name) })
	look(nodes)
}
