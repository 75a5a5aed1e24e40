package main

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// takeGPUs gives each trial of a program a GPU where the instance has some, and lets as
// many run at a time as have one, unless the command line says otherwise. It tells so.
func (o *scriptOptions) takeGPUs(ctx context.Context, s *session, experiment *unstructured.Unstructured, say io.Writer) error {
	var nodes corev1.NodeList
	if err := s.client.List(ctx, &nodes); err != nil {
		return fmt.Errorf("see which GPUs there are: %w", err)
	}
	have := 0
	for _, n := range nodes.Items {
		gpus := n.Status.Allocatable["nvidia.com/gpu"]
		have += int(gpus.Value())
	}
	told := o.shareGPUs(have)
	if told == "" {
		return nil
	}
	changed, err := o.object()
	if err != nil {
		return err
	}
	experiment.Object = changed.Object
	fmt.Fprintln(say, "vernier:", told)
	return nil
}

// shareGPUs fills in what the command line leaves open, and says what it did; "" where it
// did nothing.
func (o *scriptOptions) shareGPUs(have int) string {
	s, given, together := &o.spec, o.flags.Changed("gpus"), o.flags.Changed("parallel")
	switch {
	case have == 0 || given && (s.GPUs == 0 || together):
		return ""
	case !given && together && int(s.Parallel) > have:
		return fmt.Sprintf("trials get no GPU, because -j %d is more than the %d there are; --gpus 1 gives each trial one, for which it may wait", s.Parallel, have)
	}
	if !given {
		s.GPUs = 1
	}
	most := max(have/s.GPUs, 1)
	if !together {
		s.Parallel = min(int32(most), s.Trials)
	}
	told := fmt.Sprintf("each trial gets %d of %d GPUs, %d at a time", s.GPUs, have, s.Parallel)
	if !given {
		told += "; --gpus 0 is for none"
	}
	return told
}
