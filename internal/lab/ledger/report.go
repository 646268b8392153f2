package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Report is what a Writer has seen.
type Report struct {
	Acknowledged int
	Longest      time.Duration // that a write took to be acknowledged
	Unknown      []string      // writes that were never acknowledged
}

// Report says it.
func (w *Writer) Report() Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Report{Acknowledged: len(w.acked), Longest: w.longest, Unknown: slices.Clone(w.unknown)}
}

// Lost compares with what is there, in one consistent read: it returns the acknowledged writes that are not.
func (w *Writer) Lost(ctx context.Context) ([]string, error) {
	there := map[string]bool{}
	list, err := w.Client.CoreV1().ConfigMaps(w.Namespace).List(ctx, metav1.ListOptions{LabelSelector: Label + "=" + w.Name})
	if err != nil {
		return nil, fmt.Errorf("ledger: read what was written: %w", err)
	}
	for _, object := range list.Items {
		there[object.Name] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var lost []string
	for name := range w.acked {
		if !there[name] {
			lost = append(lost, name)
		}
	}
	slices.Sort(lost)
	return lost, nil
}

// Check is nil if all that was acknowledged is there.
func (w *Writer) Check(ctx context.Context) error {
	lost, err := w.Lost(ctx)
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		return fmt.Errorf("%w: %s", ErrLost, strings.Join(lost, ", "))
	}
	return nil
}

// names are those of all acknowledged writes.
func (w *Writer) names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := make([]string, 0, len(w.acked))
	for name := range w.acked {
		names = append(names, name)
	}
	return names
}
