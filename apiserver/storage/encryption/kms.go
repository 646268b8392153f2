package encryption

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"google.golang.org/protobuf/proto"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	kmstypes "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/v2"
)

// How often a plugin is asked for its state, as in Kubernetes: while all is well, and while it is not. What was encrypted with a
// seed that it has not confirmed for so long could be with a key that is gone.
const (
	kmsPeriod    = time.Minute
	kmsRetry     = 10 * time.Second
	seedLifetime = 3 * time.Minute
)

// maxSeeds bounds the seeds that are remembered. One is made at each start of a server and for each key of the plugin.
const maxSeeds = 1000

// kms is the provider whose key a plugin holds (KMS v2, https://kubernetes.io/docs/tasks/administer-cluster/kms-provider/). The
// plugin encrypts a seed, which the server has made; from the seed come the keys of values (envelope.go). So the plugin
// is asked once per seed, not once per value.
type kms struct {
	name   []byte // the prefix
	plugin *kmsClient
	log    *slog.Logger

	cancel context.CancelFunc
	done   chan struct{}
	flight singleflight.Group // of questions for seeds

	mu    sync.Mutex // guards what follows; never held while the plugin is asked
	write *writeSeed // nil: the plugin has not answered yet
	fault error      // why it does not; nil: it does
	seeds map[[sha256.Size]byte]opener
}

// writeSeed is what values are written with.
type writeSeed struct {
	seed      []byte
	envelope  *kmstypes.EncryptedObject // without data
	confirmed time.Time                 // when the plugin said that its key is the current one
}

// newKMS asks the plugin once before it returns, and then goes on asking until close, or until ctx ends.
func newKMS(ctx context.Context, c *apiserverv1.KMSConfiguration, log *slog.Logger) *kms {
	ctx, cancel := context.WithCancel(ctx)
	k := &kms{
		name: fmt.Appendf(nil, "%skms:v2:%s:", marker, c.Name), plugin: dialKMS(c), log: log.With("plugin", c.Name),
		cancel: cancel, done: make(chan struct{}), seeds: map[[sha256.Size]byte]opener{},
	}
	k.look(ctx)
	go k.run(ctx)
	return k
}

func (k *kms) run(ctx context.Context) {
	defer close(k.done)
	for {
		wait := kmsPeriod
		if k.broken() != nil {
			wait = kmsRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		k.look(ctx)
	}
}

func (k *kms) close() {
	k.cancel()
	<-k.done
	k.plugin.close()
}

func (k *kms) broken() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fault
}

// look asks for the plugin's state, and makes a new seed if its key is a new one.
func (k *kms) look(ctx context.Context) {
	err := k.refresh(ctx)
	k.mu.Lock()
	before := k.fault
	k.fault = err
	k.mu.Unlock()
	switch {
	case err != nil && before == nil && ctx.Err() == nil:
		k.log.Warn("the KMS plugin is not available: what it has to encrypt cannot be written", "err", err)
	case err == nil && before != nil:
		k.log.Info("the KMS plugin is available again")
	}
}

func (k *kms) refresh(ctx context.Context) error {
	began := time.Now()
	keyID, err := k.plugin.status(ctx)
	if err != nil {
		return err
	}
	k.mu.Lock()
	current := k.write
	if current != nil && current.envelope.KeyID == keyID {
		k.write = &writeSeed{current.seed, current.envelope, began}
		k.mu.Unlock()
		return nil
	}
	k.mu.Unlock()
	seed := make([]byte, seedBytes)
	random(seed)
	envelope, err := k.plugin.encrypt(ctx, seed)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.write = &writeSeed{seed, envelope, began}
	k.remember(seedID(envelope), seedOpener(seed))
	return nil
}

// errUnconfirmed: the plugin has not been asked for a while.
var errUnconfirmed = errors.New("it has not said lately that its key is still the current one")

func (k *kms) prefix() []byte { return k.name }

// seal implements provider.
func (k *kms) seal(plain, key []byte) ([]byte, error) {
	k.mu.Lock()
	write, fault := k.write, k.fault
	k.mu.Unlock()
	if write == nil || time.Since(write.confirmed) > seedLifetime {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnavailable, k.plugin.name, cmp.Or(fault, errUnconfirmed))
	}
	data, err := sealWithSeed(write.seed, plain, key)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(&kmstypes.EncryptedObject{
		EncryptedData: data, KeyID: write.envelope.KeyID, EncryptedDEKSource: write.envelope.EncryptedDEKSource,
		Annotations: write.envelope.Annotations, EncryptedDEKSourceType: write.envelope.EncryptedDEKSourceType,
	})
}

// open implements provider.
func (k *kms) open(sealed, key []byte) (plain []byte, stale bool, err error) {
	envelope := &kmstypes.EncryptedObject{}
	if err := proto.Unmarshal(sealed, envelope); err != nil {
		return nil, false, ErrDamaged
	}
	if err := checkEnvelope(envelope); err != nil {
		return nil, false, err
	}
	open, err := k.opener(envelope)
	if err != nil {
		return nil, false, err
	}
	if plain, err = open(envelope.EncryptedData, key); err != nil {
		return nil, false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return plain, k.write != nil && k.write.envelope.KeyID != envelope.KeyID, nil
}

// opener returns what opens the data of an envelope; it asks the plugin if the seed is not known yet.
func (k *kms) opener(envelope *kmstypes.EncryptedObject) (opener, error) {
	id := seedID(envelope)
	k.mu.Lock()
	known := k.seeds[id]
	k.mu.Unlock()
	if known != nil {
		return known, nil
	}
	found, err, _ := k.flight.Do(string(id[:]), func() (any, error) {
		source, err := k.plugin.decrypt(context.Background(), envelope) // bounded by the plugin's timeout; others wait for it as well
		if err != nil {
			return nil, err
		}
		open, err := openerOf(envelope.EncryptedDEKSourceType, source)
		if err != nil {
			return nil, err
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.remember(id, open)
		return open, nil
	})
	if err != nil {
		return nil, err
	}
	return found.(opener), nil
}

// remember keeps a seed. The caller holds the lock.
func (k *kms) remember(id [sha256.Size]byte, open opener) {
	if len(k.seeds) >= maxSeeds {
		clear(k.seeds)
	}
	k.seeds[id] = open
}
