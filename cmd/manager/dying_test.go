package main

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// dieAfter makes a manager die after n writes that changed something.
func dieAfter(n int) (change func(*manager.Options), died chan struct{}) {
	funcs, died := dyingWrites(n)
	return func(mo *manager.Options) {
		mo.NewClient = func(cfg *rest.Config, o client.Options) (client.Client, error) {
			inner, err := client.NewWithWatch(cfg, o)
			if err != nil {
				return nil, err
			}
			return interceptor.NewClient(inner, funcs), nil
		}
	}, died
}

// dyingWrites let no write after the n-th reach the API server. died is closed then.
func dyingWrites(n int) (funcs interceptor.Funcs, died chan struct{}) {
	died = make(chan struct{})
	var mu sync.Mutex
	write := func(do func() error) error {
		mu.Lock()
		defer mu.Unlock()
		if n <= 0 {
			return errors.New("the manager is dead")
		}
		if err := do(); err != nil {
			return err
		}
		if n--; n == 0 {
			close(died)
		}
		return nil
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return write(func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return write(func() error { return c.Update(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return write(func() error { return c.Delete(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return write(func() error { return c.Patch(ctx, obj, p, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return write(func() error { return c.SubResource(sub).Update(ctx, obj, opts...) })
		},
	}, died
}
