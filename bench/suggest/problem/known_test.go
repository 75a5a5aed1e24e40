package problem

import (
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// TestSpotValues compares with values that were computed with numpy from the
// published formulas, term by term and not by this code.
func TestSpotValues(t *testing.T) {
	for name, c := range map[string]struct{ got, want float64 }{
		"branin":      {branin(1, 1), wantBranin},
		"hartmann6":   {hartmann6([]float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6}), wantHartmann6},
		"ackley":      {ackley([]float64{1, -2, 0.5}), wantAckley},
		"levy":        {levy([]float64{1, -2, 0.5}), wantLevy},
		"rosenbrock":  {rosenbrock([]float64{1, -2, 0.5}), wantRosenbrock},
		"rastrigin":   {rastrigin([]float64{1, -2, 0.3}), wantRastrigin},
		"griewank":    {griewank([]float64{1, -2, 0.5}), wantGriewank},
		"michalewicz": {michalewicz([]float64{2.2, 1.57, 0.5}), wantMichalewicz},
		"styblinski":  {styblinski([]float64{1, -2, 0.5}), wantStyblinski},
		"T_osz":       {oscillated(-2.5), wantOscillated},
	} {
		if !(math.Abs(c.got-c.want) <= 1e-12*(1+math.Abs(c.want))) {
			t.Errorf("%s: %.17g, want %.17g", name, c.got, c.want)
		}
	}
}

func TestRotationsAreOrthogonal(t *testing.T) {
	p := bbobProblem(bbobFunctions()[0], 10)
	if len(p.Parameters) != 10 {
		t.Fatalf("%d parameters", len(p.Parameters))
	}
	m := rotation(20, rng.New(0, "test", 0, "rotation"))
	for i := range m {
		for j := range m {
			want := 0.0
			if i == j {
				want = 1
			}
			if math.Abs(dot(m[i], m[j])-want) > 1e-13 {
				t.Fatalf("rows %d and %d have the product %v", i, j, dot(m[i], m[j]))
			}
		}
	}
}

// Values from numpy 2.4.
const (
	wantBranin      = 27.702905548512433
	wantHartmann6   = -1.4069105761385297
	wantAckley      = 5.972029779887098
	wantLevy        = 5.95583651294723
	wantRosenbrock  = 2134.0
	wantRastrigin   = 18.180169943749473
	wantGriewank    = 0.9205421473217799
	wantMichalewicz = -1.8011407184739683
	wantStyblinski  = -34.71875
	wantOscillated  = -2.4215845754650656
)
