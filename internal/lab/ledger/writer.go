package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Label is on every ConfigMap that a Writer makes; its value is the writer's name.
const Label = "lab.kontiki/writer"

// Writer writes under one name.
type Writer struct {
	Name      string
	Namespace string
	Client    kubernetes.Interface
	Every     time.Duration // from the begin of a write to that of the next one
	Timeout   time.Duration // of one try

	mu      sync.Mutex // guards what follows
	id      string     // of this Writer, in all that it makes
	acked   map[string]time.Duration
	unknown []string // begun and never acknowledged, in order
	longest time.Duration
}

// Run writes one after the other until ctx ends. Each is tried until it is acknowledged, also for a while after ctx has
// ended (patience); the error says that one is not.
func (w *Writer) Run(ctx context.Context, patience time.Duration) error {
	for n := 1; ctx.Err() == nil; n++ {
		began := time.Now()
		name := fmt.Sprintf("%s-%d", w.Name, n)
		if err := w.insist(ctx, name, patience); err != nil {
			return err
		}
		sleep(ctx, w.Every-time.Since(began))
	}
	return nil
}

// Count is Run for so many writes.
func (w *Writer) Count(ctx context.Context, writes int, patience time.Duration) error {
	for n := range writes {
		if err := w.insist(ctx, fmt.Sprintf("%s-%d", w.Name, n+1), patience); err != nil {
			return err
		}
	}
	return nil
}

// insist creates one ConfigMap, whatever it takes, unless its name is no name or not free.
func (w *Writer) insist(ctx context.Context, name string, patience time.Duration) error {
	began := time.Now()
	giveUp, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(patience, cancel) })()
	for {
		err := w.create(giveUp, name)
		if err == nil {
			w.acknowledged(name, time.Since(began))
			return nil
		}
		if errors.Is(err, ErrTaken) || apierrors.IsInvalid(err) { // trying again will not help
			return fmt.Errorf("ledger: %w", err)
		}
		if giveUp.Err() != nil {
			w.failed(name)
			return fmt.Errorf("ledger: %s is not acknowledged %s after the end: %w", name, patience, err)
		}
		sleep(giveUp, 20*time.Millisecond)
	}
}

// RunUntilError begins a write every so often, whether the last one is acknowledged or not, until one fails; then it waits for
// those that are under way. None is tried again.
func (w *Writer) RunUntilError(ctx context.Context) {
	ctx, failed := context.WithCancel(ctx)
	defer failed()
	var under sync.WaitGroup
	for n := 1; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("%s-%d", w.Name, n)
		began := time.Now()
		under.Go(func() {
			if err := w.create(context.WithoutCancel(ctx), name); err != nil {
				w.failed(name)
				failed()
				return
			}
			w.acknowledged(name, time.Since(began))
		})
		sleep(ctx, w.Every)
	}
	under.Wait()
}

// create makes a ConfigMap, or finds that an earlier try has made it.
func (w *Writer) create(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{Label: w.Name}},
		Data:       map[string]string{runKey: w.run()},
	}
	maps := w.Client.CoreV1().ConfigMaps(w.Namespace)
	_, err := maps.Create(ctx, object, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	found, err := maps.Get(ctx, name, metav1.GetOptions{})
	if err == nil && found.Data[runKey] != w.run() {
		return fmt.Errorf("%s: %w", name, ErrTaken)
	}
	return err
}

// runKey is where a ConfigMap says which Writer made it: another one may have had the same name.
const runKey = "run"

func (w *Writer) run() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.id == "" {
		w.id = rand.Text()
	}
	return w.id
}

func (w *Writer) acknowledged(name string, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.acked == nil {
		w.acked = map[string]time.Duration{}
	}
	w.acked[name] = took
	w.longest = max(w.longest, took)
}

func (w *Writer) failed(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unknown = append(w.unknown, name)
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
