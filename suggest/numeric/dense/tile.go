// Package dense has the dense linear algebra of the Gaussian process: products
// in small tiles, a Cholesky factor that grows row by row, and its inverse.
//
// Each element of a result is summed in ascending order, one product after
// another, each product rounded before it is added. So a result has the same
// bits whether it was computed at once or piece by piece, in blocks or alone,
// with vector instructions or without.
package dense

// Lanes is the width of a panel: how many columns are computed at once.
const Lanes = 8

// strided is a matrix whose rows are rowStep apart and whose columns are
// columnStep apart in data, from start on.
type strided struct {
	data                []float64
	start               int
	rowStep, columnStep int
}

// multiply adds the product of the first k columns of a, which has the given
// number of rows, and of k rows of the panel b (Lanes wide, without gaps) to c,
// whose rows are step apart.
func multiply(rows, k int, a strided, b, c []float64, step int) {
	if k <= 0 || rows <= 0 {
		return
	}
	_ = b[k*Lanes-1]
	_ = c[(rows-1)*step+Lanes-1]
	_ = a.data[a.start+(rows-1)*a.rowStep+(k-1)*a.columnStep]
	row := 0
	if vectorized {
		for ; row+4 <= rows; row += 4 {
			multiply4(k, &a.data[a.start+row*a.rowStep], a.rowStep*8, a.columnStep*8, &b[0], &c[row*step], step*8)
		}
		for ; row < rows; row++ {
			multiply1(k, &a.data[a.start+row*a.rowStep], a.columnStep*8, &b[0], &c[row*step])
		}
		return
	}
	for ; row < rows; row++ {
		multiplyRow(k, a, row, b, c[row*step:])
	}
}

// multiplyRow is multiply for one row, in plain Go. The conversions keep the
// compiler from fusing a product with its sum.
func multiplyRow(k int, a strided, row int, b, c []float64) {
	at := a.start + row*a.rowStep
	out := (*[Lanes]float64)(c)
	for i := range k {
		x := a.data[at]
		at += a.columnStep
		y := (*[Lanes]float64)(b[i*Lanes:])
		out[0] += float64(x * y[0])
		out[1] += float64(x * y[1])
		out[2] += float64(x * y[2])
		out[3] += float64(x * y[3])
		out[4] += float64(x * y[4])
		out[5] += float64(x * y[5])
		out[6] += float64(x * y[6])
		out[7] += float64(x * y[7])
	}
}
