package compare

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// grpcFront is the etcd gRPC API of a member, through client/v3.
type grpcFront struct{ client *clientv3.Client }

func dial(endpoint string) (grpcFront, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	return grpcFront{c}, err
}

func (f grpcFront) Put(ctx context.Context, key string, value []byte) error {
	_, err := f.client.Put(ctx, key, string(value))
	return err
}

func (f grpcFront) CAS(ctx context.Context, key string, value []byte, old int64) (int64, error) {
	res, err := f.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", old)).
		Then(clientv3.OpPut(key, string(value))).Else(clientv3.OpGet(key)).Commit()
	if err == nil && !res.Succeeded {
		err = fmt.Errorf("%s is not at revision %d", key, old)
	}
	if err != nil {
		return 0, err
	}
	return res.Header.Revision, nil
}

func (f grpcFront) Get(ctx context.Context, key string, serializable bool) error {
	var options []clientv3.OpOption
	if serializable {
		options = append(options, clientv3.WithSerializable())
	}
	res, err := f.client.Get(ctx, key, options...)
	if err == nil && len(res.Kvs) != 1 {
		err = fmt.Errorf("%s is not there", key)
	}
	return err
}

func (f grpcFront) List(ctx context.Context, key, end string, want int) error {
	res, err := f.client.Get(ctx, key, clientv3.WithRange(end))
	if err == nil && len(res.Kvs) != want {
		err = fmt.Errorf("%d keys from %s to %s", len(res.Kvs), key, end)
	}
	return err
}

func (f grpcFront) Watch(ctx context.Context, key string, ready func(), event func([]byte)) error {
	for r := range f.client.Watch(ctx, key, clientv3.WithCreatedNotify()) {
		if r.Created {
			ready()
		}
		for _, e := range r.Events {
			event(e.Kv.Value)
		}
		if err := r.Err(); err != nil {
			return err
		}
	}
	return ctx.Err()
}
