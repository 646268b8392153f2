package apiload

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"kontiki/internal/bench/load"
	"kontiki/internal/definitions"
)

// plainKind is a kind whose objects travel as JSON, which is all that custom resources speak. What the bytes cost to
// decode at the client is left out, so that kinds compare as the server sees them.
type plainKind struct {
	what string
	path string // of the collection
	body string // with a place for the name
}

// plainKinds are what is compared: the same kilobyte in a ConfigMap and in a custom resource.
var plainKinds = []plainKind{
	{"ConfigMap", "/api/v1/namespaces/" + namespace + "/configmaps",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"data":"` + kilobyte + `"}}`},
	{"custom resource", "/apis/" + definitions.Group + "/v1/namespaces/" + namespace + "/widgets",
		`{"apiVersion":"` + definitions.Group + `/v1","kind":"Widget","metadata":{"name":%q},"spec":{"data":"` + kilobyte + `"}}`},
}

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// plain is the connection of one of a load's clients.
func (r *runner) plain(i int) rest.Interface { return r.plains[i%len(r.plains)] }

func (r *runner) createPlain(ctx context.Context, c int, k plainKind, name string) error {
	return r.plain(c).Post().AbsPath(k.path).Body(fmt.Appendf(nil, k.body, name)).Do(ctx).Error()
}

// customs compares custom resources with ConfigMaps, load by load in turns.
func (r *runner) customs(ctx context.Context) error {
	if err := r.define(ctx, "Widget", definitions.Typical); err != nil {
		return err
	}
	defer r.undefine(ctx, "Widget")
	for _, clients := range []int{1, 64} {
		if err := r.besides(ctx, fmt.Sprintf("create of 1 KiB, JSON, %d clients", clients), func(k plainKind) (load.Measured, error) {
			return load.Run(ctx, clients, r.Each, func(ctx context.Context, c int, n int64) error {
				return r.createPlain(ctx, c, k, fmt.Sprintf("c-%d-%d", clients, n))
			})
		}); err != nil {
			return err
		}
	}
	if err := r.besides(ctx, fmt.Sprintf("list of %d, JSON", listedCustoms), func(k plainKind) (load.Measured, error) { return r.listPlain(ctx, k) }); err != nil {
		return err
	}
	return r.besides(ctx, fmt.Sprintf("%d watchers, as fast as it goes, events", watchers), func(k plainKind) (load.Measured, error) { return r.watchPlain(ctx, k) })
}

// besides runs one load on each kind, and reports the custom resource beside the ConfigMap.
func (r *runner) besides(ctx context.Context, what string, run func(plainKind) (load.Measured, error)) error {
	var base float64
	for i, k := range plainKinds {
		m, err := run(k)
		if cleared := r.clear(ctx, k); err == nil {
			err = cleared
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", what, k.what, err)
		}
		aim, shown := "", figure(m)
		if i == 0 {
			base = m.PerSecond
		} else {
			aim, shown = "60 % of a ConfigMap", fmt.Sprintf("%s   %3.0f %%", shown, 100*m.PerSecond/base)
		}
		r.Report(what+": "+k.what, shown, aim)
	}
	return nil
}

func (r *runner) clear(ctx context.Context, k plainKind) error {
	return r.plain(0).Delete().AbsPath(k.path).Do(ctx).Error()
}

// listedCustoms is how many objects are listed.
const listedCustoms = 2000

func (r *runner) listPlain(ctx context.Context, k plainKind) (load.Measured, error) {
	var group errgroup.Group
	const clients = 16
	for c := range clients {
		group.Go(func() error {
			for i := c; i < listedCustoms; i += clients {
				if err := r.createPlain(ctx, c, k, fmt.Sprintf("l-%d", i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return load.Measured{}, err
	}
	return load.Run(ctx, 1, r.Each, func(ctx context.Context, _ int, _ int64) error {
		data, err := r.plain(0).Get().AbsPath(k.path).Do(ctx).Raw()
		if err == nil && len(data) < listedCustoms*len(kilobyte) {
			err = fmt.Errorf("%d bytes are too few", len(data))
		}
		return err
	})
}

// watchPlain counts the events that reach the watchers while 16 clients create as fast as they can.
func (r *runner) watchPlain(ctx context.Context, k plainKind) (load.Measured, error) {
	list, err := r.plain(0).Get().AbsPath(k.path).Do(ctx).Raw()
	if err != nil {
		return load.Measured{}, err
	}
	var meta metav1.PartialObjectMetadataList
	if err := json.Unmarshal(list, &meta); err != nil {
		return load.Measured{}, err
	}
	var events, wanted atomic.Int64
	wanted.Store(1 << 62) // until it is known
	var reading errgroup.Group
	for i := range watchers {
		stream, err := r.plain(i).Get().AbsPath(k.path).Param("watch", "true").Param("resourceVersion", meta.ResourceVersion).Stream(ctx)
		if err != nil {
			return load.Measured{}, err
		}
		defer stream.Close()
		reading.Go(func() error { return countLines(stream, &events, &wanted) })
	}
	began := time.Now()
	m, err := load.Run(ctx, 16, r.Each, func(ctx context.Context, c int, n int64) error {
		return r.createPlain(ctx, c, k, fmt.Sprintf("f-%d", n))
	})
	if err != nil {
		return load.Measured{}, err
	}
	wanted.Store(int64(m.Count))
	for events.Load() < int64(m.Count)*watchers {
		if err := load.Pause(ctx, time.Millisecond); err != nil {
			return load.Measured{}, err
		}
	}
	m.PerSecond = float64(events.Load()) / time.Since(began).Seconds()
	return m, nil
}

// countLines reads a stream until somebody closes it; that it ends early is an error.
func countLines(stream io.Reader, lines, wanted *atomic.Int64) error {
	in, mine := bufio.NewReaderSize(stream, 64<<10), int64(0)
	for {
		switch _, err := in.ReadSlice('\n'); {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && mine < wanted.Load():
			return err
		case err != nil:
			return nil
		}
		mine++
		lines.Add(1)
	}
}

// define installs a definition.
func (r *runner) define(ctx context.Context, kind string, size int) error {
	body, err := json.Marshal(definitions.Sized(kind, size))
	if err != nil {
		return err
	}
	return r.plain(0).Post().AbsPath(definitionsPath).Body(body).Do(ctx).Error()
}

func (r *runner) undefine(ctx context.Context, kind string) {
	_ = r.plain(0).Delete().AbsPath(definitionsPath + "/" + definitions.Sized(kind, 0).Name).Do(ctx).Error()
}

// applied changes a manifest so that applying it again changes the definition.
func applied(manifest []byte, n int) []byte {
	return bytes.Replace(manifest, []byte("at most 1000 replicas"), fmt.Appendf(nil, "at most 1000 replicas (%d)", n), 1)
}
