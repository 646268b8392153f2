package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var labStrict = flag.Bool("lab.strict", false, "TestLabSoak counts the time in which this machine had too few processors, too")

// convergeLimit is how long the rules of a machine may go on sending to a pod that is dead.
const convergeLimit = 5 * time.Second

// deaths kills one pod after the other while the lab is broken and used, and sees how long each machine goes on sending to it.
//
// Pods die in two ways, in turn: all their processes are killed on their machine, of which that machine's agent has to tell; or
// they are deleted without a grace period, of which the API server tells. The five seconds of a machine begin with the pod's death
// (the return of kill(2), or of the DELETE). They begin anew at the end of each time in which
//
//   - the machine's own kontiki did not run (it was killed, stopped, paused, or its machine reset), or
//   - no API server that has a quorum answered a question from the machine within a second,
//
// as reach finds out by asking; for a pod whose processes were killed this goes for the machine of the pod as well, which nobody
// else knows of. There is no other excuse: that the server that an agent called is gone while others serve, that the holder of the
// controllers' Leases is, that packets are lost or late, or that a disk is slow, is what the five seconds are for. Without
// -lab.strict, in CI where all packages are tested at once, the time in which some process of this machine waited for a processor
// is not counted (/proc/pressure/cpu): it is reported beside the other.
type deaths struct {
	*soak
	reach  *reach
	served bool // the Service is there

	mu              sync.Mutex // guards what follows
	took, processor []time.Duration
	killed, deleted int
}

// death is one of them.
type death struct {
	pod     *corev1.Pod
	machine string // the pod's, if it has to tell
	at      time.Time
	stalled time.Duration
}

const (
	// doomed are how many pods there are to be killed, of one Service that stays.
	doomed = 4
	// deathsLeast is how many die, however short the soak is.
	deathsLeast = 4
)

// watchDeaths kills until ctx ends, and there have been some. It returns when there are pods to kill.
func watchDeaths(ctx context.Context, s *soak, users *sync.WaitGroup) *deaths {
	asking, stop := context.WithCancel(context.WithoutCancel(ctx)) // what has begun is checked
	s.t.Cleanup(stop)
	d := &deaths{soak: s, reach: watchReach(asking, s.labCLI, users)}
	eventually(s.t, time.Minute, func() string {
		if len(d.alive(asking)) == 0 {
			return "no pod has traffic"
		}
		return ""
	})
	users.Go(func() {
		defer stop()
		for n := 0; (ctx.Err() == nil || n < deathsLeast) && !s.t.Failed(); pauseFor(asking, 200*time.Millisecond) {
			if one := d.kill(asking, d.alive(asking), n%2 == 0); one != nil {
				d.follow(asking, one)
				n++
			}
		}
	})
	return d
}

// alive returns the pods that are ready and have traffic, and sees to it that there are some.
func (d *deaths) alive(ctx context.Context) (ready []*corev1.Pod) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	meta := metav1.ObjectMeta{Name: "doomed", Labels: map[string]string{"app": "doomed", "churn": "yes"}}
	client := d.churn.client.CoreV1()
	if !d.served {
		_, err := client.Services("default").Create(ctx, &corev1.Service{
			ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: meta.Labels, Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
		d.served = err == nil || apierrors.IsAlreadyExists(err)
	}
	list, err := client.Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=doomed"})
	if err != nil {
		return nil // nobody is there to ask at the moment
	}
	living := 0
	for i := range list.Items {
		switch pod := &list.Items[i]; {
		case pod.Status.Phase == corev1.PodFailed:
			_ = client.Pods("default").Delete(ctx, pod.Name, metav1.DeleteOptions{})
		case pod.DeletionTimestamp == nil:
			living++
			if podReady(pod) && d.sentTo(pod.Status.PodIP) {
				ready = append(ready, pod)
			}
		}
	}
	meta.Name, meta.GenerateName = "", "doomed-"
	for ; living < doomed; living++ {
		_, _ = client.Pods("default").Create(ctx, &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "hello", Image: "kontiki.local/hello:latest", ImagePullPolicy: corev1.PullIfNotPresent}},
		}}, metav1.CreateOptions{})
	}
	return ready
}

// kill ends one of some pods and returns it, or nil if there is none.
func (d *deaths) kill(ctx context.Context, ready []*corev1.Pod, processes bool) *death {
	if len(ready) == 0 {
		return nil
	}
	one := &death{pod: ready[rand.IntN(len(ready))], stalled: processorStall()}
	if processes {
		if !killContainer(one.pod) {
			return nil
		}
		one.machine = one.pod.Spec.NodeName
	} else {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		options := metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &one.pod.UID}}
		if d.churn.client.CoreV1().Pods("default").Delete(ctx, one.pod.Name, options) != nil {
			return nil
		}
	}
	one.at = time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if processes {
		d.killed++
	} else {
		d.deleted++
	}
	return one
}

// sentTo says whether some machine has rules that send to an address: a death that nobody notices is none.
func (d *deaths) sentTo(address string) bool {
	for _, machine := range soakMachines {
		if sends(machine, address) {
			return true
		}
	}
	return false
}

// sends says whether a machine's rules send to an address. One that has no such rules does not, as after a reset; one that cannot be
// asked, because its namespace is being made for example, does as far as anybody knows.
func sends(machine, address string) bool {
	var rules []byte
	err := inMachine(machine, func() (err error) {
		rules, err = exec.Command("nft", "list", "table", "ip", "kontiki-services").CombinedOutput()
		return err
	})
	if err != nil {
		return !strings.Contains(string(rules), "No such file or directory") // that is nft's, of the table
	}
	return strings.Contains(string(rules), address+" ")
}

// killContainer kills what runs in a pod's containers: their cgroups have their ids.
func killContainer(pod *corev1.Pod) (killed bool) {
	for _, status := range pod.Status.ContainerStatuses {
		_, id, _ := strings.Cut(status.ContainerID, "://")
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range dirs {
			groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
			if pid, _ := strconv.Atoi(filepath.Base(dir)); id != "" && strings.Contains(string(groups), "/"+id+"\n") {
				killed = syscall.Kill(pid, syscall.SIGKILL) == nil || killed
			}
		}
	}
	return killed
}

// follow looks at all machines until none sends to the pod.
func (d *deaths) follow(ctx context.Context, one *death) {
	var machines sync.WaitGroup
	for _, machine := range soakMachines {
		machines.Go(func() { d.followOn(ctx, machine, one) })
	}
	machines.Wait()
}

func (d *deaths) followOn(ctx context.Context, machine string, one *death) {
	address := one.pod.Status.PodIP
	for sends(machine, address) {
		if time.Since(one.at) > convergeLimit && d.isAnothers(ctx, one) {
			return
		}
		if time.Since(one.at) > time.Minute {
			assert.Fail(d.t, "a dead pod has traffic", "after a minute %s still sends to %s\n%s\n%s", machine, address, d.holders(address), d.logTail(machine))
			return
		}
		pauseFor(ctx, 50*time.Millisecond)
	}
	now := time.Now()
	stalled := processorStall() - one.stalled
	since := d.couldSince(ctx, machine, one.at, now)
	if one.machine != "" {
		since = d.couldSince(ctx, one.machine, since, now)
	}
	took := max(0, now.Sub(since))
	stalled = min(stalled, took)
	d.mu.Lock()
	d.took, d.processor = append(d.took, took), append(d.processor, took-stalled)
	d.mu.Unlock()
	if counted := took - stalled; took > convergeLimit {
		d.t.Logf("%s: %s sent to %s, dead since %s (%s), for %s, %s of them without a processor", now.Format("15:04:05.000"), machine, address,
			one.at.Format("15:04:05.000"), one.how(), took.Round(time.Millisecond), stalled.Round(time.Millisecond))
		if *labStrict {
			counted = took
		}
		assert.LessOrEqual(d.t, counted, convergeLimit, "%s sent to a dead pod for too long\n%s", machine, d.logTail(machine))
	}
}

// isAnothers says whether a pod that lives has the address: a machine that was reset begins with the first one again.
func (d *deaths) isAnothers(ctx context.Context, one *death) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	list, err := d.churn.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	return err == nil && slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool {
		return pod.Status.PodIP == one.pod.Status.PodIP && pod.UID != one.pod.UID && pod.Status.Phase == corev1.PodRunning
	})
}

// couldSince is reach's, which knows nothing new when the test is over.
func (d *deaths) couldSince(ctx context.Context, machine string, since, now time.Time) time.Time {
	ctx, cancel := context.WithTimeout(ctx, 2*(reachPatience+reachPeriod))
	defer cancel()
	return d.reach.couldSince(ctx, machine, since, now)
}

func (o *death) how() string {
	if o.machine == "" {
		return "deleted"
	}
	return "killed on " + o.machine
}

func (d *deaths) report() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprintf("%s (without processor stalls: %s); %d pods killed, %d deleted", spread(d.took), spread(d.processor), d.killed, d.deleted)
}

// processorStall is for how long some process of this machine has waited for a processor, since it was started; 0 if the kernel does
// not say (Documentation/accounting/psi.rst).
func processorStall() time.Duration {
	pressure, _ := os.ReadFile("/proc/pressure/cpu")
	_, total, _ := strings.Cut(string(pressure), "total=")
	total, _, _ = strings.Cut(total, "\n")
	microseconds, _ := strconv.ParseInt(total, 10, 64)
	return time.Duration(microseconds) * time.Microsecond
}
