package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	clientv3 "go.etcd.io/etcd/client/v3"

	"kontiki/internal/bench/load"
	"kontiki/internal/bench/member"
)

// bench is a comparison that is running.
type bench struct {
	Options
	columns []Column
	results results
}

// settle is how long a filled cluster is left alone before its memory is looked at.
const settle = 5 * time.Second

// column measures a column once, with a cluster of its own.
func (b *bench) column(ctx context.Context, c Column) (err error) {
	cl, err := startCluster(ctx, c, b.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cl.stop()) }()
	d := b.driver(c, cl)
	defer d.close()
	if err := cl.fill(ctx); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	term, err := cl.term(ctx)
	if err != nil {
		return err
	}
	steps := []func(context.Context, Column, *cluster, driver) error{b.idle, b.loads, b.fanOut}
	for _, step := range steps {
		if err := step(ctx, c, cl, d); err != nil {
			return err
		}
	}
	after, err := cl.term(ctx)
	if err != nil {
		return err
	}
	b.results.add(c, "elections", 0, figures{value: float64(after - term)})
	return b.failOver(ctx, c, cl, d)
}

func (b *bench) driver(c Column, cl *cluster) driver {
	if c.own {
		return ownDriver{cl, cl.leader}
	}
	return &clientDriver{cl: cl, perConn: b.PerConn}
}

// fill writes the keys that are read and overwritten.
func (cl *cluster) fill(ctx context.Context) error {
	const perTxn, clients = 100, 8
	client := cl.clients[cl.leader].client
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for first := 0; first < member.FilledKeys; first += perTxn {
		group.Go(func() error {
			var ops []clientv3.Op
			for n := first; n < first+perTxn; n++ {
				ops = append(ops, clientv3.OpPut(member.KeyNumber(int64(n)), string(member.Value256)))
			}
			_, err := client.Txn(ctx).Then(ops...).Commit()
			return err
		})
	}
	return group.Wait()
}

func (b *bench) idle(ctx context.Context, c Column, cl *cluster, _ driver) error {
	if !b.wants(nameMemory) {
		return nil
	}
	if err := load.Pause(ctx, settle); err != nil {
		return err
	}
	u, err := cl.usage()
	b.results.add(c, "idle", 0, figures{usage: u})
	return err
}

func (b *bench) loads(ctx context.Context, c Column, cl *cluster, d driver) error {
	for _, name := range member.Workloads() {
		if !b.wants(name) {
			continue
		}
		for _, clients := range b.Clients {
			r := member.Request{Workload: name, Clients: clients, Each: b.Each, Run: fmt.Sprint(name, clients)}
			if err := b.load(ctx, c, cl, d, r); err != nil {
				return fmt.Errorf("%s, %d clients: %w", name, clients, err)
			}
		}
	}
	return nil
}

func (b *bench) load(ctx context.Context, c Column, cl *cluster, d driver, r member.Request) error {
	endProfile, err := b.profile(c, cl, r.Run)
	if err != nil {
		return err
	}
	before, err := cl.usage()
	if err != nil {
		return err
	}
	peak := cl.watchMemory(ctx)
	m, err := d.load(ctx, r)
	if err != nil {
		return err
	}
	most := peak()
	after, err := cl.usage()
	if err != nil {
		return err
	}
	most.cpuSeconds = after.cpuSeconds - before.cpuSeconds
	b.results.add(c, r.Workload, r.Clients, figures{Measured: m, usage: most})
	return endProfile()
}

// sampleEvery is how often memory under load is looked at.
const sampleEvery = 50 * time.Millisecond

// watchMemory looks at the members' memory until the function that it returns is called, which says how
// much it was at most.
func (cl *cluster) watchMemory(ctx context.Context) (most func() usage) {
	ctx, cancel := context.WithCancel(ctx)
	var peak usage
	var group sync.WaitGroup
	group.Go(func() {
		for {
			if u, err := cl.usage(); err == nil {
				peak.resident, peak.anon = max(peak.resident, u.resident), max(peak.anon, u.anon)
			}
			if load.Pause(ctx, sampleEvery) != nil {
				return
			}
		}
	})
	return func() usage { cancel(); group.Wait(); return peak }
}

func (b *bench) fanOut(ctx context.Context, c Column, cl *cluster, d driver) error {
	if !b.wants(nameWatch) {
		return nil
	}
	endProfile, err := b.profile(c, cl, nameWatch)
	if err != nil {
		return err
	}
	before, err := cl.usage()
	if err != nil {
		return err
	}
	m, err := d.fanOut(ctx, 3*b.Each)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	after, err := cl.usage()
	if err != nil {
		return err
	}
	after.cpuSeconds -= before.cpuSeconds
	b.results.add(c, nameWatch, 0, figures{Measured: m, usage: after})
	return endProfile()
}

// failOver kills the leader and measures how long it takes until another member accepts a write.
func (b *bench) failOver(ctx context.Context, c Column, cl *cluster, d driver) error {
	if !b.wants(nameFailOver) {
		return nil
	}
	var others []int
	for i := range cl.processes {
		if i != cl.leader {
			others = append(others, i)
		}
	}
	began := time.Now()
	cl.processes[cl.leader].kill()
	if err := d.firstWrite(ctx, others); err != nil {
		return fmt.Errorf("fail-over: %w", err)
	}
	b.results.add(c, nameFailOver, 0, figures{value: time.Since(began).Seconds()})
	return nil
}

// profile begins a CPU profile of each member, and one of this process if that makes the load.
func (b *bench) profile(c Column, cl *cluster, name string) (end func() error, err error) {
	if b.Profile == "" {
		return func() error { return nil }, nil
	}
	base := filepath.Join(b.Profile, c.Name+"-"+name)
	for i, p := range cl.processes {
		if _, err := p.ask(member.Request{Do: "profile", File: base + cl.role(i) + ".pprof"}); err != nil {
			return nil, fmt.Errorf("profile: %w", err)
		}
	}
	mine, err := os.Create(base + "-client.pprof")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(mine); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		errs := []error{mine.Close()}
		for _, p := range cl.processes {
			_, err := p.ask(member.Request{Do: "endProfile"})
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}, nil
}

// role names a member in the name of its profile.
func (cl *cluster) role(i int) string {
	if i == cl.leader {
		return "-leader"
	}
	return fmt.Sprintf("-follower%d", i)
}
