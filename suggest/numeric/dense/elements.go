package dense

// What follows is done for each element of out alone, so that vector
// instructions give the bits of the plain loops. The other slices have at least
// the length of out.

// Vectorized says whether there are vector instructions: AVX.
func Vectorized() bool { return vectorized }

// AddSquares4 adds the squares of x[0]-a, x[1]-b, x[2]-c and x[3]-d to out.
func AddSquares4(x *[4]float64, a, b, c, d, out []float64) {
	n := len(out)
	a, b, c, d = a[:n], b[:n], c[:n], d[:n]
	first := 0
	if vectorized && n >= 4 {
		first = n &^ 3
		squares4(first, x, &a[0], &b[0], &c[0], &d[0], &out[0])
	}
	for i := first; i < n; i++ {
		p, q, r, s := x[0]-a[i], x[1]-b[i], x[2]-c[i], x[3]-d[i]
		out[i] += float64(p*p) + float64(q*q) + (float64(r*r) + float64(s*s))
	}
}

// AddSquares2 adds the squares of x-a and y-b to out.
func AddSquares2(x, y float64, a, b, out []float64) {
	n := len(out)
	a, b = a[:n], b[:n]
	first := 0
	if vectorized && n >= 4 {
		first = n &^ 3
		squares2(first, x, y, &a[0], &b[0], &out[0])
	}
	for i := first; i < n; i++ {
		s, t := x-a[i], y-b[i]
		out[i] += float64(s*s) + float64(t*t)
	}
}

// AddProducts2 adds x*a and y*b to out.
func AddProducts2(x, y float64, a, b, out []float64) {
	n := len(out)
	a, b = a[:n], b[:n]
	first := 0
	if vectorized && n >= 4 {
		first = n &^ 3
		products2(first, x, y, &a[0], &b[0], &out[0])
	}
	for i := first; i < n; i++ {
		out[i] += float64(x*a[i]) + float64(y*b[i])
	}
}

// AddQuadratic adds weight*t*(t+2) to out.
func AddQuadratic(weight float64, t, out []float64) {
	n := len(out)
	t = t[:n]
	first := 0
	if vectorized && n >= 4 {
		first = n &^ 3
		quadratic(first, weight, &t[0], &out[0])
	}
	for i := first; i < n; i++ {
		out[i] += float64(weight * float64(t[i]*(t[i]+2)))
	}
}

// Scale multiplies out by x.
func Scale(x float64, out []float64) {
	first := 0
	if vectorized && len(out) >= 4 {
		first = len(out) &^ 3
		scale(first, x, &out[0])
	}
	for i := first; i < len(out); i++ {
		out[i] *= x
	}
}

// PairSums gives, for each of four columns, the sums of its products with two
// others, which stand in pairs: elements 2i and 2i+1 of pairs belong to element
// i of a column. Each sum is made in ascending order.
func PairSums(pairs []float64, columns *[4][]float64) (sums [8]float64) {
	n := len(pairs) / 2
	if n == 0 {
		return sums
	}
	a, b, c, d := columns[0][:n], columns[1][:n], columns[2][:n], columns[3][:n]
	if vectorized {
		pairSums(n, &pairs[0], &a[0], &b[0], &c[0], &d[0], &sums)
		return sums
	}
	for i := range n {
		x, y := pairs[2*i], pairs[2*i+1]
		sums[0] += float64(x * a[i])
		sums[1] += float64(y * a[i])
		sums[2] += float64(x * b[i])
		sums[3] += float64(y * b[i])
		sums[4] += float64(x * c[i])
		sums[5] += float64(y * c[i])
		sums[6] += float64(x * d[i])
		sums[7] += float64(y * d[i])
	}
	return sums
}

// WeightedSquares gives, for each of four columns and of four queries, the sum
// of weight*(x-y)*(x-y) over the elements y of the column. x has the queries'
// coordinates and the result their sums, column by column; weights has four for
// each element, one for each query. Each sum is made in ascending order.
func WeightedSquares(weights []float64, x *[16]float64, columns *[4][]float64) (sums [16]float64) {
	n := len(weights) / 4
	if n == 0 {
		return sums
	}
	a, b, c, d := columns[0][:n], columns[1][:n], columns[2][:n], columns[3][:n]
	if vectorized {
		weightedSquares(n, &weights[0], x, &a[0], &b[0], &c[0], &d[0], &sums)
		return sums
	}
	for k, column := range [4][]float64{a, b, c, d} {
		for i, y := range column {
			for q := range 4 {
				t := x[4*k+q] - y
				sums[4*k+q] += float64(float64(weights[4*i+q]*t) * t)
			}
		}
	}
	return sums
}
