package dense

// vectorized says whether the processor and its operating system have AVX.
var vectorized = hasAVX()

func hasAVX() bool

// multiply4 is multiply for four rows; the steps are in bytes.
//
//go:noescape
func multiply4(k int, a *float64, rowStep, columnStep int, b, c *float64, step int)

// multiply1 is multiply for one row; the step is in bytes.
//
//go:noescape
func multiply1(k int, a *float64, columnStep int, b, c *float64)

// terms8 is Kernels.Terms for so many panels; the step between columns is in
// bytes.
//
//go:noescape
func terms8(panels int, k *float64, step, dims int, x, out *float64) float64

// squares4, squares2, products2, quadratic and scale are AddSquares4 and so on
// for n elements, a multiple of 4 and at least 4.
//
//go:noescape
func squares4(n int, x *[4]float64, a, b, c, d, out *float64)

//go:noescape
func squares2(n int, x, y float64, a, b, out *float64)

//go:noescape
func products2(n int, x, y float64, a, b, out *float64)

//go:noescape
func quadratic(n int, weight float64, t, out *float64)

//go:noescape
func scale(n int, x float64, out *float64)

// pairSums is PairSums for n elements of each column, at least 1.
//
//go:noescape
func pairSums(n int, pairs, a, b, c, d *float64, sums *[8]float64)

// solve4 finishes Lanes elements of each of four rows of a Factor, from x on:
// l is the diagonal element in the same columns. Both are in rows that are step
// bytes apart.
//
//go:noescape
func solve4(l *float64, step int, x *float64)

// weightedSquares is WeightedSquares for n elements, at least 1.
//
//go:noescape
func weightedSquares(n int, weights *float64, x *[16]float64, a, b, c, d *float64, sums *[16]float64)
