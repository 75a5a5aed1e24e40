package problem

import (
	"math"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func bbobWeierstrass(b *bbob, _ *rng.Stream) func([]float64) float64 {
	wave := func(v float64) float64 {
		sum := 0.0
		for k := range 12 {
			sum += math.Pow(0.5, float64(k)) * math.Cos(2*math.Pi*math.Pow(3, float64(k))*(v+0.5))
		}
		return sum
	}
	lowest := wave(0)
	return func(x []float64) float64 {
		z := oscillate(times(b.r, b.from(x)))
		z = times(b.r, b.lambda(0.01, times(b.q, z)))
		mean := sumOf(z, wave) / float64(b.n)
		return 10 * (mean - lowest) * square(mean-lowest)
	}
}

func bbobSchaffers(b *bbob, _ *rng.Stream) func([]float64) float64 {
	return func(x []float64) float64 {
		z := b.lambda(10, times(b.q, b.tilt(0.5, times(b.r, b.from(x)))))
		sum := 0.0
		for i := range b.n - 1 {
			s := math.Hypot(z[i], z[i+1])
			sum += math.Sqrt(s) * (1 + square(math.Sin(50*math.Pow(s, 0.2))))
		}
		return square(sum / float64(b.n-1))
	}
}

// schwefelOptimum is the place of the best minimum of Schwefel's function, in
// hundreds, and schwefelMinimum its depth there.
const (
	schwefelOptimum = 4.2096874633
	schwefelMinimum = 4.189828872724339
)

func bbobSchwefel(b *bbob, stream *rng.Stream) func([]float64) float64 {
	sign := make([]float64, b.n)
	for i := range sign {
		sign[i] = math.Copysign(1, stream.Float64()-0.5)
		b.optimum[i] = sign[i] * schwefelOptimum / 2
	}
	return func(x []float64) float64 {
		z := make([]float64, b.n)
		for i := range z {
			z[i] = 2 * sign[i] * x[i]
			if i > 0 {
				z[i] += 0.25 * (2*sign[i-1]*x[i-1] - schwefelOptimum)
			}
		}
		for i := range z {
			z[i] -= schwefelOptimum
		}
		z = b.lambda(10, z)
		sum, outside := 0.0, 0.0
		for i := range z {
			v := 100 * (z[i] + schwefelOptimum)
			sum += v * math.Sin(math.Sqrt(math.Abs(v)))
			outside += square(math.Max(0, math.Abs(v/100)-5))
		}
		return schwefelMinimum - sum/(100*float64(b.n)) + 100*outside
	}
}

func bbobPeaks101(b *bbob, stream *rng.Stream) func([]float64) float64 {
	return peaks(b, stream, 101, 1000)
}

func bbobPeaks21(b *bbob, stream *rng.Stream) func([]float64) float64 {
	return peaks(b, stream, 21, 1e6)
}

// peaks is Gallagher's function: the highest of count Gaussian peaks, the first
// of which is the global optimum and has the condition first.
func peaks(b *bbob, stream *rng.Stream, count int, first float64) func([]float64) float64 {
	conditions := make([]float64, count-1)
	for j := range conditions {
		conditions[j] = math.Pow(1000, 2*float64(j)/float64(count-2))
	}
	shuffle(conditions, stream)
	conditions = append([]float64{first}, conditions...)
	weight := make([]float64, count)
	centre := make([][]float64, count) // rotated
	scale := make([][]float64, count)
	for i := range count {
		weight[i] = 10
		place := b.optimum
		if i > 0 {
			weight[i] = 1.1 + 8*float64(i-1)/float64(count-2)
			place = make([]float64, b.n)
			for j := range place {
				place[j] = 10*stream.Float64() - 5
			}
		}
		centre[i] = times(b.r, place)
		scale[i] = b.lambda(conditions[i], same(b.n, math.Pow(conditions[i], -0.25)))
		shuffle(scale[i], stream)
	}
	return func(x []float64) float64 {
		z := times(b.r, x)
		best := 0.0
		for i := range count {
			distance := 0.0
			for j := range z {
				distance += scale[i][j] * square(z[j]-centre[i][j])
			}
			best = math.Max(best, weight[i]*math.Exp(-distance/(2*float64(b.n))))
		}
		return square(oscillated(10 - best))
	}
}

// shuffle is Fisher and Yates's.
func shuffle[T any](list []T, stream *rng.Stream) {
	for i := len(list) - 1; i > 0; i-- {
		j := stream.Uint64N(uint64(i + 1))
		list[i], list[j] = list[j], list[i]
	}
}
