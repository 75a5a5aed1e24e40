package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/client"
)

// asks measures the programmatic API: o.parallel workers ask for trials, report once and
// complete them, until o.trials are done.
func asks(ctx context.Context, o options) error {
	instance, err := start(ctx, o)
	if err != nil {
		return err
	}
	defer instance.stop()
	c, err := instance.caller()
	if err != nil {
		return err
	}
	const parent = "namespaces/default/experiments/asks"
	spec, err := structpb.NewStruct(map[string]any{
		"parameters": []any{
			map[string]any{"name": "lr", "parameterType": "double", "feasibleSpace": map[string]any{"min": "1e-5", "max": "0.1", "distribution": "logUniform"}},
			map[string]any{"name": "layers", "parameterType": "int", "feasibleSpace": map[string]any{"min": "1", "max": "8"}},
			map[string]any{"name": "optimizer", "parameterType": "categorical", "feasibleSpace": map[string]any{"list": []any{"sgd", "adam", "ftrl"}}},
		},
		"objective":          map[string]any{"type": "minimize", "objectiveMetricName": "loss"},
		"algorithm":          map[string]any{"algorithmName": o.ask},
		"parallelTrialCount": o.parallel, "maxTrialCount": o.trials,
	})
	if err != nil {
		return err
	}
	if _, err := c.CreateExperiment(ctx, &vernierv1.CreateExperimentRequest{Experiment: &vernierv1.Experiment{Name: parent, Spec: spec}}); err != nil {
		return err
	}
	before, err := instance.cpu()
	if err != nil {
		return err
	}
	var times waits
	begin := time.Now()
	workers, ctx := errgroup.WithContext(ctx)
	for range o.parallel {
		workers.Go(func() error { return cycles(ctx, c, parent, &times) })
	}
	if err := workers.Wait(); err != nil {
		return err
	}
	elapsed := time.Since(begin).Seconds()
	after, err := instance.cpu()
	if err != nil {
		return err
	}
	if len(times.all) < o.trials {
		return fmt.Errorf("%d trials were handed out, want %d", len(times.all), o.trials)
	}
	fmt.Printf("%s, %d workers: %d cycles of suggest, report and complete in %.1f s: %.0f a second; CPU of each:", o.ask, o.parallel, o.trials, elapsed, float64(o.trials)/elapsed)
	for _, name := range slices.SortedFunc(maps.Keys(after), func(a, b string) int { return cmp.Compare(after[b]-before[b], after[a]-before[a]) }) {
		if each := 1000 * (after[name] - before[name]) / float64(o.trials); each >= 0.05 {
			fmt.Printf(" %s %.1f ms", name, each)
		}
	}
	fmt.Println()
	n := max(o.trials/10, 1)
	fmt.Printf("SuggestTrials: median %.1f ms in the first tenth of the trials, %.1f ms in the last\n", 1000*median(times.all[:n]), 1000*median(times.all[len(times.all)-n:]))
	return nil
}

// cpu is how long each program of the instance has worked, and this one, in seconds of a
// core: other work on the machine does not count.
func (i *instance) cpu() (map[string]float64, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, p := range all {
		command, err := p.CmdLine()
		if err != nil || len(command) == 0 {
			continue // it has ended
		}
		name := filepath.Base(command[0])
		if len(command) > 1 && name == "controlplane" {
			name = command[1]
		}
		ofInstance := slices.ContainsFunc(command, func(argument string) bool { return strings.Contains(argument, i.home) })
		if stat, err := p.Stat(); err == nil && (ofInstance || p.PID == os.Getpid()) {
			out[name] += stat.CPUTime()
		}
	}
	return out, nil
}

// waits are how long questions took that got a trial, in seconds, in their order.
type waits struct {
	mu  sync.Mutex
	all []float64
}

func (w *waits) add(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, d.Seconds())
}

// cycles runs trials until there are no more.
func cycles(ctx context.Context, c *client.Client, parent string, times *waits) error {
	for {
		begin := time.Now()
		answer, err := c.SuggestTrials(ctx, &vernierv1.SuggestTrialsRequest{Parent: parent, MaxWait: durationpb.New(5 * time.Second)})
		if err != nil {
			return err
		}
		if answer.GetState() != vernierv1.Experiment_ACTIVE {
			return nil
		}
		for _, t := range answer.GetTrials() {
			times.add(time.Since(begin))
			loss := map[string]float64{"loss": t.GetParameters()["lr"].GetNumberValue()}
			report := &vernierv1.ReportTrialRequest{Name: t.GetName(), Attempt: t.GetAttempt(), Measurements: []*vernierv1.Measurement{{Step: 1, Values: loss}}}
			if _, err := c.ReportTrial(ctx, report); err != nil {
				return err
			}
			end := &vernierv1.CompleteTrialRequest{Name: t.GetName(), Attempt: t.GetAttempt(), Outcome: &vernierv1.CompleteTrialRequest_Succeeded_{
				Succeeded: &vernierv1.CompleteTrialRequest_Succeeded{Values: loss}}}
			if _, err := c.CompleteTrial(ctx, end); err != nil {
				return err
			}
		}
	}
}

// caller is a client of the instance's programmatic API.
func (i *instance) caller() (*client.Client, error) {
	if i.home == "" {
		return nil, errors.New("the API is measured on an embedded control plane: leave out -kubeconfig")
	}
	token, err := os.ReadFile(filepath.Join(i.home, "api.token"))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(i.home, "ports.json"))
	if err != nil {
		return nil, err
	}
	var ports struct{ Report int }
	if err := json.Unmarshal(text, &ports); err != nil {
		return nil, fmt.Errorf("read the ports of the instance: %w", err)
	}
	return client.New(fmt.Sprintf("http://127.0.0.1:%d", ports.Report), strings.TrimSpace(string(token)), nil), nil
}
