package demo

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

const lossMetric, accuracyMetric, latencyMetric = "loss", "accuracy", "latency"

var metricNames = []string{lossMetric, latencyMetric, accuracyMetric}

var optimizers = []string{"adamw", "sgd", "lion", "rmsprop"}
var policies = []string{"none", "flip", "randaugment", "mixup"}

// source is where the curves of a trial come from: its point, and what follows of it.
type source struct {
	names  []string
	values []string
	// final loss, latency in ms, and after how many steps the loss is near its end.
	loss, latency, pace float64
	seed                uint64
	steps               int // so far
	until               int // where it ends
	fails               bool
}

func spec(o Options) v1beta1.ExperimentSpec {
	double := func(name, low, high string, d v1beta1.Distribution) v1beta1.ParameterSpec {
		return v1beta1.ParameterSpec{Name: name, ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: v1beta1.FeasibleSpace{Min: low, Max: high, Distribution: d}}
	}
	integer := func(name, low, high string) v1beta1.ParameterSpec {
		return v1beta1.ParameterSpec{Name: name, ParameterType: v1beta1.ParameterTypeInt, FeasibleSpace: v1beta1.FeasibleSpace{Min: low, Max: high}}
	}
	words := func(name string, list []string) v1beta1.ParameterSpec {
		return v1beta1.ParameterSpec{Name: name, ParameterType: v1beta1.ParameterTypeCategorical, FeasibleSpace: v1beta1.FeasibleSpace{List: list}}
	}
	return v1beta1.ExperimentSpec{
		Parameters: []v1beta1.ParameterSpec{
			double("lr", "1e-5", "0.1", v1beta1.DistributionLogUniform),
			double("weight_decay", "1e-6", "0.01", v1beta1.DistributionLogUniform),
			words("optimizer", optimizers),
			{Name: "batch_size", ParameterType: v1beta1.ParameterTypeDiscrete, FeasibleSpace: v1beta1.FeasibleSpace{List: []string{"32", "64", "128", "256", "512"}}},
			integer("depth", "8", "50"),
			integer("width", "16", "256"),
			double("dropout", "0", "0.6", ""),
			double("momentum", "0.8", "0.99", ""),
			double("label_smoothing", "0", "0.2", ""),
			words("augment", policies),
			integer("warmup", "0", "20"),
			double("clip_norm", "0.1", "10", v1beta1.DistributionLogUniform),
		},
		Objectives: []v1beta1.ObjectiveMetric{
			{ObjectiveMetricName: lossMetric, Type: v1beta1.ObjectiveTypeMinimize},
			{ObjectiveMetricName: latencyMetric, Type: v1beta1.ObjectiveTypeMinimize},
		},
		Objective: &v1beta1.ObjectiveSpec{
			Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: lossMetric, AdditionalMetricNames: []string{latencyMetric, accuracyMetric},
		},
		Algorithm:          &v1beta1.AlgorithmSpec{AlgorithmName: "tpe"},
		EarlyStopping:      &v1beta1.EarlyStoppingSpec{AlgorithmName: "medianstop"},
		ParallelTrialCount: ptr.To(int32(max(1, o.Running))),
		MaxTrialCount:      ptr.To(int32(o.Trials + o.Trials/4)),
	}
}

// propose draws a point, nearer to the good ones as n grows.
func propose(r *rand.Rand, n, points int) source {
	skill := math.Min(0.75, float64(n)/(float64(n)+400)+0.1)
	near := func(good float64) float64 { // in [0, 1]
		if r.Float64() < skill {
			return math.Min(1, math.Max(0, good+r.NormFloat64()*0.12))
		}
		return r.Float64()
	}
	pick := func(list []string, good int) int {
		if r.Float64() < skill {
			return good
		}
		return r.IntN(len(list))
	}
	lr, decay, depth, width, dropout, momentum := near(0.62), near(0.55), near(0.5), near(0.55), near(0.3), near(0.6)
	smooth, warm, clip := near(0.5), near(0.4), near(0.5)
	opt, augment, batch := pick(optimizers, 0), pick(policies, 2), r.IntN(5)
	format := func(v float64) string { return strconv.FormatFloat(v, 'g', 5, 64) }
	whole := func(low, high int, f float64) string {
		return strconv.Itoa(low + int(math.Round(f*float64(high-low))))
	}
	off := func(x, good, weight float64) float64 { return weight * (x - good) * (x - good) }
	s := source{seed: r.Uint64(), until: points,
		names: []string{"lr", "weight_decay", "optimizer", "batch_size", "depth", "width", "dropout", "momentum", "label_smoothing", "augment", "warmup", "clip_norm"},
		values: []string{
			format(1e-5 * math.Pow(1e4, lr)), format(1e-6 * math.Pow(1e4, decay)), optimizers[opt], strconv.Itoa(32 << batch),
			whole(8, 50, depth), whole(16, 256, width), format(dropout * 0.6), format(0.8 + momentum*0.19), format(smooth * 0.2),
			policies[augment], whole(0, 20, warm), format(0.1 * math.Pow(100, clip)),
		},
	}
	s.loss = 0.62 + off(lr, 0.62, 4.5) + off(decay, 0.55, 0.5) + off(dropout, 0.3, 0.7) + off(momentum, 0.6, 0.25) + off(depth*width, 0.4, 1.1) + off(smooth, 0.5, 0.1)
	s.loss += []float64{0, 0.12, 0.05, 0.3}[opt] + []float64{0.2, 0.1, 0, 0.06}[augment] + off(lr+float64(batch)/20, 0.72, 0.8) + math.Abs(r.NormFloat64())*0.02
	s.latency = 3 + 26*depth*(0.35+width) + 4*width + r.Float64()
	s.pace = (0.05 + 0.3*(1-lr)) * float64(points)
	s.fails = depth*width > 0.8 && batch >= 3 && r.Float64() < 0.7 || r.Float64() < 0.006
	if s.fails || s.loss > 1.15 && r.Float64() < 0.8 {
		s.until = max(2, int(float64(points)*(0.05+0.5*r.Float64())))
	}
	return s
}

func (s *source) assignments() []v1beta1.ParameterAssignment {
	out := make([]v1beta1.ParameterAssignment, len(s.names))
	for i := range out {
		out[i] = v1beta1.ParameterAssignment{Name: s.names[i], Value: s.values[i]}
	}
	return out
}

// at is the value of a metric after a step.
func (s *source) at(metric string, step int) float64 {
	h := (s.seed ^ uint64(step)*0x9e3779b97f4a7c15) + uint64(metric[0])<<32
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	noise := float64((h^h>>31)>>11)/(1<<53) - 0.5
	fallen := math.Exp(-float64(step) / s.pace)
	switch metric {
	case lossMetric:
		return s.loss + (4.6-s.loss)*fallen + noise*(0.02+0.25*fallen)
	case accuracyMetric:
		return math.Max(0.01, math.Min(0.995, (1.35-0.62*s.loss)*(1-fallen)+noise*0.01))
	default:
		return s.latency * (1 + noise*0.04)
	}
}

// stepTime is how long a step takes.
const stepTime = 5 * time.Second
