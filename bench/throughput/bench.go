package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/procfs"
	"github.com/vernier-ml/vernier/api/v1beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/apimachinery/pkg/runtime"
)

// result is one round of one kind.
type result struct {
	kind    string
	elapsed time.Duration
	// first is the time from apply to the first training process.
	first time.Duration
	// cpu is what the machine spent, in seconds of a core.
	cpu float64
}

// workload runs n programs, parallel at a time, and returns when all have
// ended.
type workload interface {
	name() string
	run(ctx context.Context, r round) error
}

// round is what a workload is given.
type round struct {
	number           int
	trials, parallel int
	program          program
}

// program is what each Job runs.
type program struct {
	command []string
	image   string
	// dir of this machine that the pods of a cluster see at the same path; empty
	// where they see all.
	dir string
}

func bench(ctx context.Context, o options) error {
	instance, err := start(ctx, o)
	if err != nil {
		return err
	}
	defer instance.stop()
	c, err := newClient(instance.config)
	if err != nil {
		return err
	}
	workloads := []workload{experiment{c}, bareJobs{c}}
	var results []result
	for i := range o.rounds + 1 {
		for _, w := range workloads {
			r, err := measure(ctx, w, o, i)
			if err == nil {
				err = awaitEmpty(ctx, c)
			}
			if err != nil {
				return fmt.Errorf("round %d of %s: %w", i, w.name(), err)
			}
			note := ""
			if i == 0 {
				note = "  (warm-up, not counted)"
			} else {
				results = append(results, r)
			}
			fmt.Printf("round %d  %-10s %6.2f s  %5.2f a second  first process after %4.0f ms  CPU %3.0f ms each%s\n",
				i, r.kind, r.elapsed.Seconds(), float64(o.trials)/r.elapsed.Seconds(), float64(r.first.Milliseconds()), 1000*r.cpu/float64(o.trials), note)
		}
		slices.Reverse(workloads)
	}
	report(o, results)
	return nil
}

// awaitEmpty waits until nothing of a workload is left, so that its cleaning up is
// not counted against the next one.
func awaitEmpty(ctx context.Context, c client.Client) error {
	return wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		left := 0
		for _, list := range []client.ObjectList{&v1beta1.TrialList{}, &batchv1.JobList{}, &corev1.PodList{}} {
			if err := c.List(ctx, list, client.InNamespace("default")); err != nil {
				return false, err
			}
			left += meta.LenList(list)
		}
		return left == 0, nil
	})
}

func measure(ctx context.Context, w workload, o options, number int) (result, error) {
	dir, err := os.MkdirTemp("", "vernier-stamps-")
	if err != nil {
		return result{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p, stamps, err := newProgram(o, dir)
	if err != nil {
		return result{}, err
	}
	before, err := cpuSeconds()
	if err != nil {
		return result{}, err
	}
	begin := time.Now()
	if err := w.run(ctx, round{number: number, trials: o.trials, parallel: o.parallel, program: p}); err != nil {
		return result{}, err
	}
	elapsed := time.Since(begin)
	after, err := cpuSeconds()
	if err != nil {
		return result{}, err
	}
	first, count, err := firstStamp(stamps)
	if err != nil {
		return result{}, err
	}
	if count != o.trials {
		return result{}, fmt.Errorf("%d programs ran, want exactly %d", count, o.trials)
	}
	return result{kind: w.name(), elapsed: elapsed, first: first.Sub(begin), cpu: after - before}, nil
}

// cpuSeconds is the time that all cores of the machine have worked.
func cpuSeconds() (float64, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	stat, err := fs.Stat()
	if err != nil {
		return 0, err
	}
	t := stat.CPUTotal
	return t.User + t.Nice + t.System + t.IRQ + t.SoftIRQ, nil
}

// newProgram is this program as a child that leaves its stamps below dir. A
// cluster's pods get a copy of it there.
func newProgram(o options, dir string) (p program, stamps string, err error) {
	self, err := os.Executable()
	if err != nil {
		return program{}, "", err
	}
	stamps = filepath.Join(dir, "stamps")
	if err := os.Mkdir(stamps, 0o755); err != nil {
		return program{}, "", err
	}
	p = program{command: []string{self, "child", stamps, o.work.String()}, image: "throughput"}
	if o.kubeconfig == "" {
		return p, stamps, nil
	}
	content, err := os.ReadFile(self)
	if err != nil {
		return program{}, "", err
	}
	p.image, p.dir, p.command[0] = o.image, dir, filepath.Join(dir, "throughput")
	return p, stamps, os.WriteFile(p.command[0], content, 0o755)
}

// report prints the medians and the ratio with its spread: the ratio of each
// round's pair, smallest to largest.
func report(o options, results []result) {
	times, firsts := map[string][]float64{}, map[string][]float64{}
	for _, r := range results {
		times[r.kind] = append(times[r.kind], r.elapsed.Seconds())
		firsts[r.kind] = append(firsts[r.kind], float64(r.first.Milliseconds()))
	}
	fmt.Printf("\n%d programs of %s, %d at a time, %d rounds\n", o.trials, o.work, o.parallel, o.rounds)
	for _, kind := range []string{"trials", "bare Jobs"} {
		fmt.Printf("%-10s %5.2f a second (median), first process after %4.0f ms (median)\n", kind, float64(o.trials)/median(times[kind]), median(firsts[kind]))
	}
	ours, bare := times["trials"], times["bare Jobs"]
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = ours[i] / bare[i]
	}
	fmt.Printf("wall time (median): trials %.1f s, bare Jobs %.1f s\n", median(ours), median(bare))
	fmt.Printf("ratio of wall times, trials to bare Jobs: %.2f (%.2f to %.2f)\n", median(ours)/median(bare), slices.Min(ratios), slices.Max(ratios))
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// instance is a running control plane: an embedded one in a temporary home, or a
// cluster.
type instance struct {
	vernier, home string
	config        *rest.Config
}

func start(ctx context.Context, o options) (i *instance, err error) {
	i = &instance{vernier: o.vernier}
	if o.kubeconfig != "" {
		i.config, err = clientConfig(o.kubeconfig)
		return i, err
	}
	if i.home, err = os.MkdirTemp("", "vernier-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			i.stop()
		}
	}()
	begin := time.Now()
	up := exec.CommandContext(ctx, i.vernier, "--home", i.home, "up")
	up.Stdout, up.Stderr = os.Stderr, os.Stderr
	if err := up.Run(); err != nil {
		return i, fmt.Errorf("%v: %w", up, err)
	}
	fmt.Printf("control plane up after %.1f s\n", time.Since(begin).Seconds())
	i.config, err = clientConfig(filepath.Join(i.home, "kubeconfig"))
	return i, err
}

func clientConfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 1000, 2000
	return config, nil
}

func (i *instance) stop() {
	if i.home == "" {
		return
	}
	down := exec.Command(i.vernier, "--home", i.home, "down")
	if out, err := down.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %v\n%s", down, err, out)
	}
	_ = os.RemoveAll(i.home)
}

func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}
