package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/local/shim"
	"github.com/vernier-ml/vernier/trainer"
)

const (
	// usageEvery is how often the machine is looked at, for all trials at once.
	usageEvery = 10 * time.Second
	// usageDetail is how many points a curve has before its points get rarer: each
	// stands for this part of the trial's time so far, and at least for usageEvery. A
	// week has 2,500.
	usageDetail = 500
	// usagePatience is for how long samples are kept that cannot be reported.
	usagePatience = 10 * time.Minute
	// usageTrust is how long a token of the sampler lasts.
	usageTrust = time.Hour
	gibibyte   = 1 << 30
)

// Reporting is how the agent reports what trials use of the machine.
type Reporting struct {
	// URL of the report service. Empty: nothing is sampled.
	URL string
	// KeyFile holds the key that signs tokens.
	KeyFile string
}

// gpuState is what nvidia-smi says of a GPU. NaN is not among the values: what the
// driver does not tell has no entry.
type gpuState map[string]float64 // by the end of a metric's name

// sampler samples what trials use and reports it. All its state belongs to one
// goroutine, and losing it costs the samples of the next point.
type sampler struct {
	*node
	to  Reporting
	now func() time.Time
	// processes and gpus look at the machine.
	processes func() (map[string]shim.Usage, error)
	gpus      func(context.Context) (map[string]gpuState, error)
	trials    map[types.UID]*trialUsage // by pod
	quiet     bool                      // the last look at the GPUs failed, which was logged
}

// trialUsage is what is known of a trial whose pods run here.
type trialUsage struct {
	id     collector.TrialID
	made   time.Time
	client vernierv1.ReportServiceClient
	until  time.Time // the client's token
	// Since the last point: when that was, and the samples of each metric.
	since   time.Time
	samples map[string][]float64
	// cpu is the CPU time of each pod when it was looked at, at cpuAt.
	cpu   map[types.UID]time.Duration
	cpuAt time.Time
}

// sample samples until ctx ends.
func (n *node) sample(ctx context.Context, to Reporting) {
	s := &sampler{node: n, to: to, now: time.Now, processes: shim.Usages, gpus: lookAtGPUs, trials: map[types.UID]*trialUsage{}}
	tick := time.NewTicker(usageEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.look(ctx)
		}
	}
}

// look takes a sample of all trials, and reports those that are due.
func (s *sampler) look(ctx context.Context) {
	pods, ended := s.running(ctx)
	for _, t := range ended {
		s.tell(ctx, t, t.cpuAt)
	}
	if len(pods) == 0 {
		return
	}
	used, err := s.processes()
	if err != nil {
		s.log.Error(err, "cannot read the process table: what trials use is not known")
		return
	}
	gpus := s.lookAtGPUs(ctx, pods)
	now := s.now()
	byTrial := map[*trialUsage][]*corev1.Pod{}
	for _, p := range pods {
		t := s.trials[p.UID]
		byTrial[t] = append(byTrial[t], p)
	}
	for t, pods := range byTrial {
		slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
		t.take(now, pods, used, func(p *corev1.Pod) []gpuState { return s.statesOf(p, gpus) })
		if due := max(usageEvery, now.Sub(t.made)/usageDetail); now.Sub(t.since) < due-usageEvery/2 {
			continue
		}
		s.tell(ctx, t, now)
	}
}

// tell reports the samples of a trial. Those that cannot be reported become part of the
// next point.
func (s *sampler) tell(ctx context.Context, t *trialUsage, now time.Time) {
	if err := s.report(ctx, t, now); err != nil && ctx.Err() == nil {
		s.log.V(1).Info("what a trial uses could not be reported", "trial", t.id.Name, "reason", err.Error())
		if now.Sub(t.since) < usagePatience {
			return
		}
	}
	t.since, t.samples = now, map[string][]float64{}
}

// running are the pods of trials that run here. Those of a trial share what is known
// of it. ended are the trials of which a pod has ended and none runs.
func (s *sampler) running(ctx context.Context) (pods []*corev1.Pod, ended []*trialUsage) {
	live := map[types.UID]bool{}
	known := map[string]*trialUsage{}
	for _, t := range s.trials {
		known[t.id.UID] = t
	}
	for _, p := range s.pods.list() {
		if p.Labels[trainer.LabelTrial] == "" || p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			continue
		}
		if s.trials[p.UID] == nil {
			t, err := s.trialOf(ctx, p)
			if err != nil {
				continue // it was deleted, or is asked for again in a moment
			}
			if same := known[t.id.UID]; same != nil {
				t = same
			}
			known[t.id.UID], s.trials[p.UID] = t, t
		}
		live[p.UID] = true
		pods = append(pods, p)
	}
	gone := map[*trialUsage]bool{}
	maps.DeleteFunc(s.trials, func(uid types.UID, t *trialUsage) bool {
		gone[t] = true
		return !live[uid]
	})
	for _, t := range s.trials {
		delete(gone, t)
	}
	return pods, slices.Collect(maps.Keys(gone))
}

// trialOf reads a pod's trial.
func (s *sampler) trialOf(ctx context.Context, p *corev1.Pod) (*trialUsage, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	name := p.Labels[trainer.LabelTrial]
	raw, err := s.client.Discovery().RESTClient().Get().AbsPath("/apis/kubeflow.org/v1beta1/namespaces", p.Namespace, "trials", name).
		SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read trial %s/%s: %w", p.Namespace, name, err)
	}
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("read trial %s/%s: %w", p.Namespace, name, err)
	}
	if p.CreationTimestamp.Before(&object.CreationTimestamp) {
		return nil, errors.New("the pod is of an earlier trial of the same name")
	}
	return &trialUsage{
		id:   collector.TrialID{Namespace: p.Namespace, Name: name, Experiment: p.Labels[trainer.LabelExperiment], UID: string(object.UID)},
		made: object.CreationTimestamp.Time, since: s.now().Add(-usageEvery), samples: map[string][]float64{}, cpu: map[types.UID]time.Duration{},
	}, nil
}

// take adds a sample. What no process was seen of, because it has not begun or has ended,
// is not 0 but unknown.
func (t *trialUsage) take(now time.Time, pods []*corev1.Pod, used map[string]shim.Usage, gpus func(*corev1.Pod) []gpuState) {
	add := func(name string, v float64) { t.samples[name] = append(t.samples[name], v) }
	var memory, number int
	var computed time.Duration
	compared := false
	cpu := map[types.UID]time.Duration{}
	for _, p := range pods {
		if u, runs := used[string(p.UID)]; runs {
			memory += int(u.Memory)
			cpu[p.UID] = u.CPU
			if before, seen := t.cpu[p.UID]; seen {
				computed += max(0, u.CPU-before)
				compared = true
			}
		}
		for _, state := range gpus(p) {
			for end, v := range state {
				add(collector.SystemGPU+strconv.Itoa(number)+end, v)
			}
			number++
		}
	}
	if memory > 0 {
		add(collector.SystemMemory, float64(memory)/gibibyte)
	}
	if passed := now.Sub(t.cpuAt); compared && passed > 0 {
		add(collector.SystemCPU, computed.Seconds()/passed.Seconds())
	}
	t.cpu, t.cpuAt = cpu, now
}

// points are the samples since the last point as one of each metric: the most memory,
// and the mean of the rest. Their step is the age of the trial in seconds.
func (t *trialUsage) points(now time.Time) (out []collector.Point) {
	age := now.Sub(t.made)
	for _, name := range slices.Sorted(maps.Keys(t.samples)) {
		values := t.samples[name]
		v := 0.0
		for _, x := range values {
			v += x / float64(len(values))
		}
		if name == collector.SystemMemory || strings.HasSuffix(name, collector.GPUMemory) {
			v = slices.Max(values)
		}
		v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64) // digits that mean something
		out = append(out, collector.Point{Metric: name, Value: v, Step: int64(age.Seconds()), Time: now, Source: name, Seq: age.Milliseconds()})
	}
	return out
}

// report sends the samples of a trial.
func (s *sampler) report(ctx context.Context, t *trialUsage, now time.Time) error {
	points := t.points(now)
	if len(points) == 0 {
		return nil
	}
	if t.client == nil || now.After(t.until) {
		key, err := os.ReadFile(s.to.KeyFile)
		if err != nil {
			return fmt.Errorf("read the key of reports: %w", err)
		}
		t.until = now.Add(usageTrust / 2)
		token, err := report.Sign(key, report.Claims{Trial: t.id, Expires: now.Add(usageTrust)})
		if err != nil {
			return err
		}
		if t.client, err = report.Dial(report.DialConfig{URL: s.to.URL, Token: token}); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, usageEvery/2)
	defer cancel()
	_, err := t.client.Report(ctx, &vernierv1.ReportRequest{
		Attempt: report.EncodeAttempt(collector.Attempt{ID: collector.SystemAttempt, Started: t.made}), Points: report.EncodePoints(points),
	})
	return err
}

// statesOf are the states of the GPUs that a pod holds, in the order of its containers.
func (s *sampler) statesOf(p *corev1.Pod, gpus map[string]gpuState) (out []gpuState) {
	held := s.gpuBook.Held(p.UID)
	var seen []string
	for _, c := range allContainers(&p.Spec) {
		for _, uuid := range held[c.Name] {
			if !slices.Contains(seen, uuid) {
				seen, out = append(seen, uuid), append(out, gpus[uuid])
			}
		}
	}
	return out
}

// lookAtGPUs asks for the state of the GPUs, if a pod holds one.
func (s *sampler) lookAtGPUs(ctx context.Context, pods []*corev1.Pod) map[string]gpuState {
	if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return len(s.gpuBook.Held(p.UID)) > 0 }) {
		return nil
	}
	gpus, err := s.gpus(ctx)
	if err != nil && !s.quiet && ctx.Err() == nil {
		s.log.Error(err, "what trials use of their GPUs is not known")
	}
	s.quiet = err != nil
	return gpus
}

// lookAtGPUs asks nvidia-smi for the state of all GPUs, by UUID.
func lookAtGPUs(ctx context.Context) (map[string]gpuState, error) {
	ctx, cancel := context.WithTimeout(ctx, usageEvery/2)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=uuid,utilization.gpu,memory.used", "--format=csv,noheader,nounits").Output()
	if err != nil {
		return nil, fmt.Errorf("ask nvidia-smi for the use of the GPUs: %w", err)
	}
	return gpuStates(string(out)), nil
}

// gpuStates reads lines of a UUID, percent and MiB. What the driver does not tell, as
// the use of a GPU that is divided by MIG, is "[N/A]".
func gpuStates(text string) map[string]gpuState {
	out := map[string]gpuState{}
	for line := range strings.Lines(text) {
		fields := strings.Split(line, ",")
		if len(fields) != 3 {
			continue
		}
		state := gpuState{}
		if v, err := strconv.ParseFloat(strings.TrimSpace(fields[1]), 64); err == nil && v >= 0 && v <= 100 {
			state[collector.GPUUtilization] = v
		}
		if v, err := strconv.ParseFloat(strings.TrimSpace(fields[2]), 64); err == nil && v >= 0 {
			state[collector.GPUMemory] = v / 1024
		}
		out[strings.TrimSpace(fields[0])] = state
	}
	return out
}
