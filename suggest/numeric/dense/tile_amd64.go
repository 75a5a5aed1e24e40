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
