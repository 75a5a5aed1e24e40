package client_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/vernier-ml/vernier/client"
)

// A worker: it runs trials until there are no more. Any number of them may run at once,
// on any machines.
func Example() {
	ctx := context.Background()
	c := client.New(os.Getenv("VERNIER_API"), os.Getenv("VERNIER_API_TOKEN"), nil)
	for {
		t, running, err := c.Ask(ctx, "namespaces/default/experiments/tune")
		switch {
		case errors.Is(err, client.ErrDone):
			return
		case err != nil:
			fmt.Println(err)
			return
		}
		lr := t.GetParameters()["lr"].GetNumberValue()
		for epoch := int64(1); epoch <= 10 && running.Err() == nil; epoch++ {
			loss := math.Abs(math.Log10(lr)+3) + 1/float64(epoch) // where you would train
			if err = t.Report(ctx, epoch, map[string]float64{"loss": loss}); err != nil {
				break
			}
		}
		var stop *client.StopError
		switch {
		case errors.As(context.Cause(running), &stop):
			err = t.Prune(ctx)
		case err != nil:
			err = t.Fail(ctx, err.Error())
		default:
			err = t.Succeed(ctx, nil) // what was reported counts
		}
		if err != nil && !errors.Is(err, client.ErrStale) {
			fmt.Println(err)
			return
		}
	}
}
