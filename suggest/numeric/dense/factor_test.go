package dense

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// covariance is a random symmetric positive definite matrix.
func covariance(n int) [][]float64 {
	stream := rng.New(3, "dense", n, "covariance")
	x := random(stream, n)
	k := make([][]float64, n)
	for i := range k {
		k[i] = make([]float64, n)
		for j := range k[i] {
			k[i][j] = math.Exp(-math.Abs(x[i] - x[j]))
		}
		k[i][i] += 1e-3
	}
	return k
}

func factorOf(t *testing.T, k [][]float64, groups ...int) *Factor {
	t.Helper()
	f := &Factor{}
	for _, rows := range groups {
		if !f.Append(rows, func(i int, row []float64) { copy(row, k[i][:i+1]) }) {
			t.Fatalf("not positive definite at %d rows", f.Len())
		}
	}
	return f
}

func TestFactorAgreesWithGonum(t *testing.T) {
	for _, n := range []int{1, 2, 7, 8, 9, 30, 65, 130} {
		k := covariance(n)
		f := factorOf(t, k, n)
		sym := mat.NewSymDense(n, nil)
		for i := range n {
			for j := range n {
				sym.SetSym(i, j, k[i][j])
			}
		}
		var chol mat.Cholesky
		chol.Factorize(sym)
		var want mat.SymDense
		if err := chol.InverseTo(&want); err != nil {
			t.Fatal(err)
		}
		if got, want := f.LogDeterminant(), chol.LogDet(); math.Abs(got-want) > 1e-10*float64(n) {
			t.Errorf("n = %d: log determinant %v, want %v", n, got, want)
		}
		step := Padded(n)
		inverse, diagonal := make([]float64, n*step), make([]float64, n)
		f.Inverse(inverse, step)
		f.InverseDiagonal(diagonal)
		x := random(rng.New(4, "dense", n, "rhs"), 3*step)
		white, solved := make([]float64, 3*step), make([]float64, 3*step)
		f.Whiten(3, x, white, step)
		f.Unwhiten(3, white, solved, step)
		for i := range n {
			for j := range i + 1 {
				if got := inverse[i*step+j]; math.Abs(got-want.At(i, j)) > 1e-8*math.Abs(want.At(i, i)) {
					t.Errorf("n = %d: inverse(%d, %d) = %v, want %v", n, i, j, got, want.At(i, j))
				}
			}
			if math.Abs(diagonal[i]-want.At(i, i)) > 1e-8*diagonal[i] {
				t.Errorf("n = %d: diagonal(%d) = %v, want %v", n, i, diagonal[i], want.At(i, i))
			}
		}
		for r := range 3 {
			var sol mat.VecDense
			if err := chol.SolveVecTo(&sol, mat.NewVecDense(n, x[r*step:r*step+n])); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if got := solved[r*step+i]; math.Abs(got-sol.AtVec(i)) > 1e-7 {
					t.Errorf("n = %d: solution(%d) = %v, want %v", n, i, got, sol.AtVec(i))
				}
			}
		}
	}
}

// A cache may not change an answer: however the rows came, the bits are equal.
func TestAppendedRowsHaveTheBitsOfThoseFromScratch(t *testing.T) {
	const n = 61
	k := covariance(n)
	step := Padded(n)
	x := random(rng.New(5, "dense", 0, "rhs"), 5*step)
	solve := func(f *Factor) []float64 {
		white, solved := make([]float64, 5*step), make([]float64, 5*step)
		f.Whiten(5, x, white, step)
		f.Unwhiten(5, white, solved, step)
		var out []float64
		for r := range 5 {
			out = append(out, solved[r*step:r*step+n]...)
		}
		return out
	}
	want := solve(factorOf(t, k, n))
	groups := map[string][]int{"one by one": slices.Repeat([]int{1}, n), "in pieces": {5, 20, 3, 33}, "at a boundary": {8, 53}, "with nothing between": {0, 16, 0, 45, 0}}
	for name, g := range groups {
		if got := solve(factorOf(t, k, g...)); !slices.Equal(got, want) {
			t.Errorf("%s: other bits", name)
		}
	}
	f := factorOf(t, k, 40)
	f.Append(9, func(i int, row []float64) { clear(row); row[i] = 2 })
	f.Truncate(40)
	f.Append(n-40, func(i int, row []float64) { copy(row, k[i][:i+1]) })
	if got := solve(f); !slices.Equal(got, want) {
		t.Error("after rows were taken off: other bits")
	}
	single := make([]float64, step)
	factorOf(t, k, n).Whiten(1, x[step:], single, step)
	many := make([]float64, 5*step)
	factorOf(t, k, n).Whiten(5, x, many, step)
	if !slices.Equal(single[:n], many[step:step+n]) {
		t.Error("alone and in a block: other bits")
	}
}

// Each element of L by its definition, in ascending order: so it has the same
// bits with vector instructions and without.
func TestFactorHasTheBitsOfThePlainLoop(t *testing.T) {
	for _, n := range []int{1, 7, 8, 11, 12, 13, 20, 37, 64} {
		k := covariance(n)
		f := factorOf(t, k, n)
		want := make([][]float64, n)
		for i := range want {
			want[i] = make([]float64, n)
			for j := range i + 1 {
				sum := -k[i][j]
				for c := range j {
					sum += float64(want[i][c] * want[j][c])
				}
				if i == j {
					want[i][j] = math.Sqrt(-sum)
				} else {
					want[i][j] = -sum / want[j][j]
				}
			}
			if got := f.lower[i*f.capacity : i*f.capacity+i+1]; !slices.Equal(got, want[i][:i+1]) {
				t.Fatalf("n = %d, row %d: got %v, want %v", n, i, got, want[i][:i+1])
			}
			for j := range i + 1 {
				sum := 0.0
				for c := j; c < i; c++ {
					sum += float64(want[i][c] * f.inverse[f.at(c, j)])
				}
				x := -sum / want[i][i]
				if i == j {
					x = 1 / want[i][i]
				}
				if got := f.inverse[f.at(i, j)]; got != x || f.transposed[f.at(j, i)] != x {
					t.Fatalf("n = %d: the inverse's (%d, %d) is %v, want %v", n, i, j, got, x)
				}
			}
		}
	}
}

func TestAppendRefusesWhatIsNotPositiveDefinite(t *testing.T) {
	f := factorOf(t, covariance(10), 10)
	for name, value := range map[string]float64{"singular": 1, "NaN": math.NaN(), "infinite": math.Inf(1)} {
		if f.Append(2, func(i int, row []float64) {
			for j := range row {
				row[j] = value
			}
		}) {
			t.Errorf("%s: accepted", name)
		}
		if f.Len() != 10 {
			t.Errorf("%s: %d rows are left", name, f.Len())
		}
	}
}

func BenchmarkFactor(b *testing.B) {
	const n = 800
	k := covariance(n)
	for b.Loop() {
		f := &Factor{}
		f.Append(n, func(i int, row []float64) { copy(row, k[i][:i+1]) })
	}
}

func BenchmarkWhiten(b *testing.B) {
	const n = 800
	k := covariance(n)
	f := &Factor{}
	f.Append(n, func(i int, row []float64) { copy(row, k[i][:i+1]) })
	x, out := make([]float64, 64*n), make([]float64, 64*n)
	for b.Loop() {
		f.Whiten(64, x, out, n)
	}
}

// A Factor that is told to give up is as it was before, and rows appended later
// have the bits that they have anyway.
func TestAppendCanBeGivenUp(t *testing.T) {
	stream := rng.New(1, "dense", 0, "give up")
	const n = 70
	x := random(stream, n*n)
	fill := func(i int, row []float64) {
		for j := range row {
			row[j] = 0
			for k := range n {
				row[j] += x[i*n+k] * x[j*n+k]
			}
		}
		row[i] += 1
	}
	var want Factor
	if !want.Append(n, fill) {
		t.Fatal("it is not positive definite")
	}
	given := 0
	for after := range 60 {
		var got Factor
		got.Append(20, fill)
		before := got.LogDeterminant()
		asked := 0
		got.Ended = func() bool { asked++; return asked > after }
		if got.Append(n-20, fill) {
			break
		}
		given++
		if got.Len() != 20 || got.LogDeterminant() != before {
			t.Fatalf("given up after %d questions it has %d rows", after, got.Len())
		}
		got.Ended = nil
		if !got.Append(n-20, fill) || math.Float64bits(got.LogDeterminant()) != math.Float64bits(want.LogDeterminant()) {
			t.Fatalf("given up after %d questions, the next time differs", after)
		}
	}
	if given < 10 {
		t.Errorf("it was given up at %d places only", given)
	}
}
