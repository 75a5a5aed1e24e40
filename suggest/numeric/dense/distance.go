package dense

import "math"

// Kernels are the rows of a table of normal kernels without dependencies between
// the dimensions, stored by columns: a height, and for each dimension a mean
// and the inverse of a width. Places beyond the last kernel have height -Inf,
// so that whole panels can be computed.
type Kernels struct {
	data    []float64
	stride  int // between columns; a multiple of Lanes
	columns int
	n       int
}

// NewKernels is an empty table for kernels over so many dimensions.
func NewKernels(dims int) *Kernels { return &Kernels{columns: 1 + 2*dims} }

// Len is how many kernels there are.
func (k *Kernels) Len() int { return k.n }

func (k *Kernels) dims() int { return k.columns / 2 }

// Heights of the kernels. They may be modified.
func (k *Kernels) Heights() []float64 { return k.column(0)[:k.n] }

// Means of the kernels in a dimension. They may be modified.
func (k *Kernels) Means(dim int) []float64 { return k.column(1 + 2*dim)[:k.n] }

// Inverses of the kernels' widths in a dimension. They may be modified.
func (k *Kernels) Inverses(dim int) []float64 { return k.column(2 + 2*dim)[:k.n] }

func (k *Kernels) column(c int) []float64 { return k.data[c*k.stride : (c+1)*k.stride] }

// Clear removes all kernels.
func (k *Kernels) Clear() { k.Resize(0) }

// Resize adds kernels of height 0 and without means at the end, or takes
// kernels away there.
func (k *Kernels) Resize(n int) {
	if n > k.stride {
		k.reserve(n)
	}
	for c := range k.columns {
		column, pad := k.column(c), 0.0
		if c == 0 {
			pad = math.Inf(-1)
		}
		for i := k.n; i < n; i++ {
			column[i] = 0
		}
		for i := n; i < k.n; i++ {
			column[i] = pad
		}
	}
	k.n = n
}

// reserve makes room for n kernels and as many again.
func (k *Kernels) reserve(n int) {
	stride := (max(2*n, 8*Lanes) + Lanes - 1) / Lanes * Lanes
	if stride%512 == 0 {
		stride += Lanes // columns whose places differ by pages would share a line of the cache
	}
	data := make([]float64, k.columns*stride)
	for c := range k.columns {
		copy(data[c*stride:], k.data[c*k.stride:c*k.stride+k.n])
	}
	for i := k.n; i < stride; i++ {
		data[i] = math.Inf(-1)
	}
	k.data, k.stride = data, stride
}

// Insert makes room for a kernel at a place, of height 0 and without means.
func (k *Kernels) Insert(at int) {
	k.Resize(k.n + 1)
	for c := range k.columns {
		column := k.column(c)
		copy(column[at+1:k.n], column[at:k.n-1])
		column[at] = 0
	}
}

// Delete takes away the kernel at a place.
func (k *Kernels) Delete(at int) {
	for c := range k.columns {
		column := k.column(c)
		copy(column[at:k.n-1], column[at+1:k.n])
	}
	k.Resize(k.n - 1)
}

// Terms writes into out, for each kernel from the given one on, its height less
// the sum of the squares of (x-mean)*inverse, and gives the largest. from and
// the length of out must be multiples of Lanes and end at most Lanes-1 places
// after the last kernel; these places get -Inf.
func (k *Kernels) Terms(from int, x, out []float64) (most float64) {
	if len(out) == 0 {
		return math.Inf(-1)
	}
	dims := k.dims()
	_ = x[:dims]
	_ = k.data[(k.columns-1)*k.stride+from+len(out)-1]
	if vectorized && dims > 0 {
		return terms8(len(out)/Lanes, &k.data[from], k.stride*8, dims, &x[0], &out[0])
	}
	return k.terms(from, x, out)
}

// terms is Terms in plain Go. The conversions keep the compiler from fusing a
// product with its sum.
func (k *Kernels) terms(from int, x, out []float64) (most float64) {
	copy(out, k.data[from:])
	for j := range k.dims() {
		means, inverses, v := k.column(1 + 2*j)[from:], k.column(2 + 2*j)[from:], x[j]
		for i := range out {
			t := float64((v - means[i]) * inverses[i])
			out[i] -= float64(t * t)
		}
	}
	most = math.Inf(-1)
	for _, v := range out {
		if v > most {
			most = v
		}
	}
	return most
}
