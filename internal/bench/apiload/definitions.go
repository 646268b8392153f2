package apiload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"kontiki/internal/bench/load"
	"kontiki/internal/definitions"
)

// reapplied is how often the large definition is applied again.
const reapplied = 15

// bigDefinition applies a definition of the largest size that is in use, for the first time and again, each time with a
// change.
func (r *runner) bigDefinition(ctx context.Context) error {
	defer r.undefine(ctx, "Giant")
	definition := definitions.Sized("Giant", definitions.Large)
	document, err := json.Marshal(definition)
	if err != nil {
		return err
	}
	manifest, err := yaml.JSONToYAML(document)
	if err != nil {
		return err
	}
	for _, form := range []struct {
		name string
		body []byte
	}{{"JSON", document}, {"YAML", manifest}} {
		var took []time.Duration
		for n := range 1 + reapplied {
			began := time.Now()
			err := r.plain(0).Patch(types.ApplyYAMLPatchType).AbsPath(definitionsPath+"/"+definition.Name).Param("fieldManager", "bench").
				Body(applied(form.body, n)).Do(ctx).Error()
			if err != nil {
				return err
			}
			took = append(took, time.Since(began))
		}
		first := took[0]
		again := took[1:]
		slices.Sort(again)
		r.Report(fmt.Sprintf("definition of %d KB (%s) applied", len(form.body)/1000, form.name),
			fmt.Sprintf("first %s, again %s (median)", round(first), round(again[len(again)/2])), "300 ms")
		r.undefine(ctx, "Giant")
		if err := r.untilGone(ctx, definition.Name); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) untilGone(ctx context.Context, name string) error {
	for r.plain(0).Get().AbsPath(definitionsPath+"/"+name).Do(ctx).Error() == nil {
		if err := load.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// manyDefinitions installs definitions, and asks for the documents that describe them.
func (r *runner) manyDefinitions(ctx context.Context) error {
	before := r.memory()
	began := time.Now()
	var group errgroup.Group
	const clients = 4
	seen := make([]time.Duration, r.Definitions)
	for c := range clients {
		group.Go(func() error {
			for i := c; i < r.Definitions; i += clients {
				kind := fmt.Sprint("Thing", i)
				if err := r.define(ctx, kind, definitions.Typical); err != nil {
					return err
				}
				defined := time.Now()
				if err := r.discover(ctx, kind); err != nil {
					return err
				}
				seen[i] = time.Since(defined)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r.Report(fmt.Sprintf("%d definitions of %d KB installed", r.Definitions, definitions.Typical/1000), "in "+round(time.Since(began)).String(), "a minute")
	slices.Sort(seen)
	r.Report("each in discovery", fmt.Sprintf("%s (median), %s (the last one)", round(seen[len(seen)/2]), round(seen[len(seen)-1])), "1 s")
	if err := r.reportGrowth(ctx, "memory that they take", before); err != nil {
		return err
	}
	for _, document := range []string{"/openapi/v2", "/openapi/v3", "/openapi/v3/apis/" + definitions.Group + "/v1", "/apis"} {
		if err := r.document(ctx, document); err != nil {
			return err
		}
	}
	if err := r.define(ctx, "OneMore", definitions.Typical); err != nil {
		return err
	}
	if err := r.document(ctx, "/openapi/v2"); err != nil {
		return err
	}
	return r.reportGrowth(ctx, "memory with the documents", before)
}

// discover asks for the resources of the definitions' group until it has that of a kind.
func (r *runner) discover(ctx context.Context, kind string) error {
	for {
		found, err := r.plain(0).Get().AbsPath("/apis/" + definitions.Group + "/v1").Do(ctx).Raw()
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if bytes.Contains(found, fmt.Appendf(nil, "%q", kind)) {
			return nil
		}
		if err := load.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

func (r *runner) document(ctx context.Context, path string) error {
	began := time.Now()
	data, err := r.plain(0).Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx).Raw()
	r.Report(fmt.Sprintf("%s with %d definitions", path, r.Definitions), fmt.Sprintf("%s, %d KB", round(time.Since(began)), len(data)/1000), "")
	return err
}

// settled is how long a server has, after the load, to give back what the load alone has needed.
const settled = 5 * time.Second

// reportGrowth reports what the server takes more than before, at once and when it has settled.
func (r *runner) reportGrowth(ctx context.Context, what string, before int) error {
	if r.Memory == nil {
		return nil
	}
	atOnce := r.memory()
	if err := load.Pause(ctx, settled); err != nil {
		return err
	}
	r.Report(what, fmt.Sprintf("%d MiB at once, %d MiB after %s", atOnce-before, r.memory()-before, settled), "150 MiB")
	return nil
}

// memory is what the server takes, in MiB.
func (r *runner) memory() int {
	if r.Memory == nil {
		return 0
	}
	return r.Memory()
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
