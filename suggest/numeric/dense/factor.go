package dense

import "math"

// Factor is the Cholesky factor L of a symmetric positive definite matrix,
// K = L Lᵀ, with the inverse of L. Rows can be appended in O(n²) each and taken
// off again. It holds 3n² numbers, with room to grow. The zero Factor is that
// of the empty matrix.
//
// Rows appended one by one give the same bits as rows appended together. A
// Factor may be read from several goroutines at once, not changed.
type Factor struct {
	n, capacity int
	// lower is L, row by row, capacity apart. Above the diagonal it holds
	// nothing of use.
	lower []float64
	// inverse is L⁻¹ and transposed is its transpose, in panels of Lanes
	// columns: element (i, j) is at (j/Lanes*capacity + i)*Lanes + j%Lanes.
	inverse, transposed []float64
	panel               []float64
	// Ended is asked now and then, in steps of about n² products, whether to give
	// up. Nil: never.
	Ended func() bool
}

func (f *Factor) ended() bool { return f.Ended != nil && f.Ended() }

// Padded is the smallest multiple of Lanes that is not below n.
func Padded(n int) int { return (n + Lanes - 1) / Lanes * Lanes }

// Len is the number of rows.
func (f *Factor) Len() int { return f.n }

// Truncate takes rows off until n are left.
func (f *Factor) Truncate(n int) { f.n = min(f.n, max(0, n)) }

func (f *Factor) at(i, j int) int { return (j/Lanes*f.capacity+i)*Lanes + j%Lanes }

// Reserve makes room for n rows in all.
func (f *Factor) Reserve(n int) {
	if n <= f.capacity {
		return
	}
	g := Factor{Ended: f.Ended, n: f.n, capacity: Padded(max(n, f.capacity+f.capacity/4))}
	size := g.capacity * g.capacity
	g.lower, g.inverse, g.transposed = make([]float64, size), make([]float64, size), make([]float64, size)
	g.panel = make([]float64, g.capacity*Lanes)
	for i := range f.n {
		copy(g.lower[i*g.capacity:], f.lower[i*f.capacity:i*f.capacity+i+1])
	}
	for p := range Padded(f.n) / Lanes {
		from, to := p*f.capacity*Lanes, p*g.capacity*Lanes
		copy(g.inverse[to:], f.inverse[from:from+f.n*Lanes])
		copy(g.transposed[to:], f.transposed[from:from+f.n*Lanes])
	}
	*f = g
}

// Append adds rows to the matrix; fill writes the elements (i, 0) to (i, i) of
// row i. When the matrix is not positive definite to working precision, or
// Ended says so, ok is false and the Factor is as it was before.
func (f *Factor) Append(rows int, fill func(i int, row []float64)) (ok bool) {
	if rows <= 0 {
		return true
	}
	first, n := f.n, f.n+rows
	f.Reserve(n)
	for i := first; i < n; i++ {
		row := f.lower[i*f.capacity : i*f.capacity+i+1]
		if i%Lanes == 0 && f.ended() {
			return false
		}
		fill(i, row)
		for j := range row {
			row[j] = -row[j]
		}
	}
	for column := 0; column < n; column += Lanes {
		if f.ended() || !f.eliminate(max(first, column), n, column) {
			return false
		}
	}
	for i := first; i < n; {
		if f.ended() {
			return false
		}
		end := min(n, (i/Lanes+1)*Lanes)
		f.invert(i, end)
		i = end
	}
	f.n = n
	return true
}

// eliminate computes the elements of L in Lanes columns and the rows from first
// to n, where -K stands before.
func (f *Factor) eliminate(first, n, column int) bool {
	width := min(Lanes, n-column)
	for c := range Lanes {
		if c >= width {
			for k := range column {
				f.panel[k*Lanes+c] = 0
			}
			continue
		}
		row := f.lower[(column+c)*f.capacity:]
		for k := range column {
			f.panel[k*Lanes+c] = row[k]
		}
	}
	rows := strided{data: f.lower, start: first * f.capacity, rowStep: f.capacity, columnStep: 1}
	multiply(n-first, column, rows, f.panel, f.lower[first*f.capacity+column:], f.capacity)
	for i := first; i < n; i++ {
		if i >= column+Lanes && n-i >= 4 && vectorized { // below the diagonal
			solve4(&f.lower[column*f.capacity+column], f.capacity*8, &f.lower[i*f.capacity+column])
			i += 3
			continue
		}
		row := f.lower[i*f.capacity : (i+1)*f.capacity]
		for j := column; j < min(column+width, i+1); j++ {
			other := f.lower[j*f.capacity : (j+1)*f.capacity]
			sum := row[j]
			for k := column; k < j; k++ {
				sum += float64(row[k] * other[k])
			}
			if j < i {
				row[j] = -sum / other[j]
				continue
			}
			if !(sum < 0) || math.IsInf(sum, -1) {
				return false
			}
			row[i] = math.Sqrt(-sum)
		}
	}
	return true
}

// invert computes the rows of L⁻¹ from first to end, which lie in one group of
// Lanes rows.
func (f *Factor) invert(first, end int) {
	for column := 0; column < end; column += Lanes {
		panel := f.inverse[column*f.capacity : (column+Lanes)*f.capacity]
		var sums [Lanes * Lanes]float64
		if column < first {
			rows := strided{data: f.lower, start: first*f.capacity + column, rowStep: f.capacity, columnStep: 1}
			multiply(end-first, first-column, rows, panel[column*Lanes:], sums[:], Lanes)
		}
		for i := first; i < end; i++ {
			row := f.lower[i*f.capacity : (i+1)*f.capacity]
			sum := sums[(i-first)*Lanes : (i-first+1)*Lanes]
			if from := max(first, column); from < i {
				multiply(1, i-from, strided{data: row, start: from, rowStep: f.capacity, columnStep: 1}, panel[from*Lanes:], sum, Lanes)
			}
			for c := range min(Lanes, i-column+1) {
				x := -sum[c] / row[i]
				if column+c == i {
					x = 1 / row[i]
				}
				panel[i*Lanes+c] = x
				f.transposed[f.at(column+c, i)] = x
			}
		}
	}
}

// Whiten multiplies each row of x by L⁻¹ and writes the results to the rows of
// out. The rows of both are step apart; step is at least Padded(Len()). What
// out holds beyond Len() in a row is of no use.
func (f *Factor) Whiten(rows int, x, out []float64, step int) {
	for i := range rows {
		clear(out[i*step : i*step+Padded(f.n)])
	}
	from := strided{data: x, rowStep: step, columnStep: 1}
	for column := 0; column < f.n; column += Lanes {
		multiply(rows, min(f.n, column+Lanes), from, f.transposed[column*f.capacity:], out[column:], step)
	}
}

// Unwhiten multiplies each row of x by the transpose of L⁻¹, as Whiten does:
// after Whiten the result is that of K⁻¹.
func (f *Factor) Unwhiten(rows int, x, out []float64, step int) {
	for i := range rows {
		clear(out[i*step : i*step+Padded(f.n)])
	}
	for column := 0; column < f.n; column += Lanes {
		from := strided{data: x, start: column, rowStep: step, columnStep: 1}
		multiply(rows, f.n-column, from, f.inverse[column*f.capacity+column*Lanes:], out[column:], step)
	}
}

// LogDeterminant of K.
func (f *Factor) LogDeterminant() float64 {
	sum := 0.0
	for i := range f.n {
		sum += 2 * math.Log(f.lower[i*f.capacity+i])
	}
	return sum
}

// Inverse writes K⁻¹ to out, whose rows are step apart, at least
// Padded(Len()). Only the elements on and below the diagonal are of use, and
// none when Ended says so meanwhile.
func (f *Factor) Inverse(out []float64, step int) {
	for i := range f.n {
		clear(out[i*step : i*step+Padded(f.n)])
	}
	for column := 0; column < f.n && !f.ended(); column += Lanes {
		panel := f.inverse[column*f.capacity:]
		for row := column; row < f.n; row += Lanes {
			rows := min(Lanes, f.n-row)
			columns := strided{data: f.inverse, start: (row*f.capacity + row*Lanes), rowStep: 1, columnStep: Lanes}
			multiply(rows, f.n-row, columns, panel[row*Lanes:], out[row*step+column:], step)
		}
	}
}

// InverseDiagonal writes the diagonal of K⁻¹ to out.
func (f *Factor) InverseDiagonal(out []float64) {
	for j := range f.n {
		sum := 0.0
		for i := j; i < f.n; i++ {
			x := f.inverse[f.at(i, j)]
			sum += float64(x * x)
		}
		out[j] = sum
	}
}
