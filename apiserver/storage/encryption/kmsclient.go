package encryption

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	kmstypes "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/v2"
	kmsapi "k8s.io/kms/apis/v2"
)

// kmsClient calls a plugin. Every error of it wraps ErrUnavailable.
type kmsClient struct {
	name    string
	timeout time.Duration
	conn    *grpc.ClientConn
	api     kmsapi.KeyManagementServiceClient
	dialing error // the endpoint is none; it has been validated
}

// dialKMS does not connect: a call does. The socket's permissions are what protects it.
func dialKMS(c *apiserverv1.KMSConfiguration) *kmsClient {
	k := &kmsClient{name: c.Name, timeout: kmsTimeout(c)}
	k.conn, k.dialing = grpc.NewClient(c.Endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	if k.dialing == nil {
		k.api = kmsapi.NewKeyManagementServiceClient(k.conn)
	}
	return k
}

func (k *kmsClient) close() {
	if k.conn != nil {
		_ = k.conn.Close() // of a client: there is nothing left to lose
	}
}

// call bounds a call in time and words its error.
func (k *kmsClient) call(ctx context.Context, f func(context.Context) error) error {
	err := k.dialing
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, k.timeout)
		defer cancel()
		err = f(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnavailable, k.name, err)
	}
	return nil
}

// status returns the id of the plugin's current key.
func (k *kmsClient) status(ctx context.Context) (keyID string, err error) {
	err = k.call(ctx, func(ctx context.Context) error {
		s, err := k.api.Status(ctx, &kmsapi.StatusRequest{})
		switch {
		case err != nil:
			return err
		case s.Version != "v2" && s.Version != "v2beta1":
			return fmt.Errorf("it is of version %q, not v2", s.Version)
		case s.Healthz != "ok":
			return fmt.Errorf("it says of itself: %q", s.Healthz)
		case s.KeyId == "" || len(s.KeyId) > maxKeyIDBytes:
			return fmt.Errorf("its key's id has %d bytes, not 1 to %d", len(s.KeyId), maxKeyIDBytes)
		}
		keyID = s.KeyId
		return nil
	})
	return keyID, err
}

// encrypt returns the envelope of values that are encrypted with a seed.
func (k *kmsClient) encrypt(ctx context.Context, seed []byte) (envelope *kmstypes.EncryptedObject, err error) {
	err = k.call(ctx, func(ctx context.Context) error {
		answer, err := k.api.Encrypt(ctx, &kmsapi.EncryptRequest{Plaintext: seed, Uid: uuid.NewString()})
		if err != nil {
			return err
		}
		envelope = &kmstypes.EncryptedObject{
			KeyID: answer.KeyId, EncryptedDEKSource: answer.Ciphertext, Annotations: answer.Annotations,
			EncryptedDEKSourceType: kmstypes.EncryptedDEKSourceType_HKDF_SHA256_XNONCE_AES_GCM_SEED,
		}
		return checkEnvelope(envelope)
	})
	return envelope, err
}

// decrypt returns the seed of an envelope.
func (k *kmsClient) decrypt(ctx context.Context, envelope *kmstypes.EncryptedObject) (seed []byte, err error) {
	err = k.call(ctx, func(ctx context.Context) error {
		answer, err := k.api.Decrypt(ctx, &kmsapi.DecryptRequest{
			Ciphertext: envelope.EncryptedDEKSource, KeyId: envelope.KeyID, Annotations: envelope.Annotations, Uid: uuid.NewString(),
		})
		if err == nil {
			seed = answer.Plaintext
		}
		return err
	})
	return seed, err
}
