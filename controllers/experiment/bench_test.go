package experiment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/index"
	"github.com/vernier-ml/vernier/controllers/metrics"
	"github.com/vernier-ml/vernier/controllers/webhook"
)

const benchTemplate = `{"apiVersion":"batch/v1","kind":"Job","spec":{"template":{"spec":{"restartPolicy":"Never","containers":[
	{"name":"main","image":"i","command":["train","--a=${trialParameters.a}","--b=${trialParameters.b}","--c=${trialParameters.c}"]}]}}}}`

// cluster is a cache that shows an experiment and its trials without copies, and an
// API server that takes every write at once.
type cluster struct {
	*Controller
	exp     *v1beta1.Experiment
	trials  []*v1beta1.Trial
	index   *index.Trials
	version int
	writes  int          // of the experiment's status
	refuse  func() error // answers attempts to make a trial; may be nil
}

// newCluster has an experiment over three parameters with n trials that have ended
// and one that runs. No two trials dominate each other where there are two
// objectives.
func newCluster(tb testing.TB, algorithm string, n int, change ...func(*v1beta1.Experiment)) *cluster {
	tb.Helper()
	exp := anExperiment(func(e *v1beta1.Experiment) { e.Spec.MaxTrialCount, e.Spec.ParallelTrialCount = nil, ptr.To[int32](1) })
	exp.Spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: algorithm}
	exp.Spec.TrialTemplate = &v1beta1.TrialTemplate{
		TrialSource: v1beta1.TrialSource{TrialSpec: &runtime.RawExtension{Raw: []byte(benchTemplate)}}, PrimaryContainerName: "main",
	}
	for _, name := range []string{"a", "b", "c"} {
		exp.Spec.Parameters = append(exp.Spec.Parameters, v1beta1.ParameterSpec{
			Name: name, ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: v1beta1.FeasibleSpace{Min: "0", Max: "1"},
		})
		exp.Spec.TrialTemplate.TrialParameters = append(exp.Spec.TrialTemplate.TrialParameters, v1beta1.TrialParameterSpec{Name: name, Reference: name})
	}
	for _, f := range change {
		f(exp)
	}
	v1beta1.SetDefaults(exp)
	exp.ResourceVersion = "1"
	c := &cluster{exp: exp, version: 1, index: index.New()}
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		tb.Fatal(err)
	}
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			c.exp.DeepCopyInto(o.(*v1beta1.Experiment))
			return nil
		},
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			if c.refuse != nil {
				return c.refuse()
			}
			c.add(o.(*v1beta1.Trial))
			return nil
		},
		SubResourceUpdate: func(_ context.Context, _ client.Client, _ string, o client.Object, _ ...client.SubResourceUpdateOption) error {
			c.version++
			c.writes++
			o.SetResourceVersion(strconv.Itoa(c.version))
			o.(*v1beta1.Experiment).DeepCopyInto(c.exp)
			return nil
		},
	})
	now := noon
	c.Controller = New(Options{
		Client: api, Reader: api, Trials: c.index, Metrics: NewMetrics(metrics.Options{Registry: prometheus.NewRegistry()}, nil, nil), Recorder: events.NewFakeRecorder(1 << 20), Rules: webhook.Rules{Reader: api},
		Now: func() time.Time { now = now.Add(time.Second); return now },
	})
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		t := aTrial(i, created)
		for _, name := range []string{"a", "b", "c"} {
			t.Spec.ParameterAssignments = append(t.Spec.ParameterAssignments, v1beta1.ParameterAssignment{Name: name, Value: fmt.Sprint(r.Float64())})
		}
		c.add(t)
		c.end(i, float64(i+1), -float64(i+1))
	}
	return c
}

func (c *cluster) add(t *v1beta1.Trial) {
	c.version++
	t.UID, t.ResourceVersion = types.UID("12345678-1234-1234-1234-"+t.Name), strconv.Itoa(c.version)
	t = t.DeepCopy() // the controller's own
	metav1.SetMetaDataLabel(&t.ObjectMeta, v1beta1.LabelTrialNumber, strconv.Itoa(len(c.trials)))
	t.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c.exp, v1beta1.GroupVersion.WithKind("Experiment"))}
	c.trials = append(c.trials, t)
	c.index.Put(nil, t)
}

// drop deletes the trials from i on.
func (c *cluster) drop(i int) {
	for _, t := range c.trials[i:] {
		c.index.Put(t, nil)
	}
	c.trials = c.trials[:i]
}

// end gives a trial its result.
func (c *cluster) end(i int, loss, size float64) {
	t := c.trials[i].DeepCopy()
	t.MarkSucceeded("", metav1.NewTime(noon))
	t.Status.Observation = &v1beta1.Observation{}
	for name, v := range map[string]float64{"loss": loss, "size": size} {
		text := strconv.FormatFloat(v, 'g', -1, 64)
		t.Status.Observation.Metrics = append(t.Status.Observation.Metrics, v1beta1.Metric{Name: name, Min: text, Max: text, Latest: text})
	}
	c.put(i, t)
}

// put changes a trial.
func (c *cluster) put(i int, t *v1beta1.Trial) {
	c.version++
	t.ResourceVersion = strconv.Itoa(c.version)
	c.index.Put(c.trials[i], t)
	c.trials[i] = t
}

func (c *cluster) reconcile(tb testing.TB) {
	tb.Helper()
	if _, err := c.Reconcile(context.Background(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c.exp)}); err != nil {
		tb.Fatal(err)
	}
}

// until reconciles until there are so many trials: the first questions may be
// answered in the background.
func (c *cluster) until(tb testing.TB, trials int) {
	tb.Helper()
	for range 1000 {
		c.reconcile(tb)
		if len(c.trials) >= trials {
			return
		}
		select {
		case <-c.woken:
		case <-time.After(10 * time.Millisecond):
		}
	}
	tb.Fatalf("%d trials: %+v", len(c.trials), c.exp.LastCondition())
}

const many = 10_000

// loop measures what step costs in CPU time, of all goroutines.
func loop(b *testing.B, step func()) {
	before := cpuTime(b)
	for b.Loop() {
		step()
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/1e6, "cpu-ms/op")
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A question after one more result, with all that a reconcile does besides.
func BenchmarkQuestion(b *testing.B) {
	for _, algorithm := range []string{"random", "tpe", "cmaes"} {
		b.Run(algorithm, func(b *testing.B) {
			c := newCluster(b, algorithm, many)
			c.until(b, many+1)
			loop(b, func() {
				n := len(c.trials)
				c.end(n-1, 0.5, 0)
				c.until(b, n+1)
			})
		})
	}
}

// A question of a worker that runs a trial after the other.
func BenchmarkHandOut(b *testing.B) {
	for _, algorithm := range []string{"random", "tpe"} {
		b.Run(algorithm, func(b *testing.B) {
			c := newCluster(b, algorithm, many, func(e *v1beta1.Experiment) { e.Spec.TrialTemplate = nil })
			ask := func() {
				lease := v1beta1.Lease{Worker: "w", Request: strconv.Itoa(len(c.trials)), Seconds: 60}
				h, err := c.HandOut(context.Background(), client.ObjectKeyFromObject(c.exp), 1, lease)
				if err != nil || len(h.Trials) != 1 {
					b.Fatal(h, err)
				}
				c.end(len(c.trials)-1, 0.5, 0)
			}
			ask()
			loop(b, ask)
		})
	}
}

func BenchmarkReconcileWithoutChanges(b *testing.B) {
	c := newCluster(b, "random", many)
	c.until(b, many+1)
	loop(b, func() { c.reconcile(b) })
}

// One more result of an experiment whose trials are all on the front.
func BenchmarkLongFront(b *testing.B) {
	c := newCluster(b, "random", many, func(e *v1beta1.Experiment) {
		e.Spec.Objectives = []v1beta1.ObjectiveMetric{{ObjectiveMetricName: "loss", Type: "minimize"}, {ObjectiveMetricName: "size", Type: "minimize"}}
	})
	c.until(b, many+1)
	loop(b, func() {
		n := len(c.trials)
		c.end(n-1, float64(n), -float64(n))
		c.until(b, n+1)
	})
}
