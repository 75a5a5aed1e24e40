package pareto

// Directions are the reference directions of Das and Dennis ("Normal-boundary
// intersection", 1998), as NSGA-III uses them: all vectors of m non-negative
// multiples of 1/divisions that sum to 1, in lexicographic order. There are
// Count of them. m and divisions must be at least 1.
func Directions(m, divisions int) [][]float64 {
	var out [][]float64
	parts := make([]int, m)
	var fill func(j, left int)
	fill = func(j, left int) {
		if j == m-1 {
			parts[j] = left
			d := make([]float64, m)
			for i, k := range parts {
				d[i] = float64(k) / float64(divisions)
			}
			out = append(out, d)
			return
		}
		for k := 0; k <= left; k++ {
			parts[j] = k
			fill(j+1, left-k)
		}
	}
	fill(0, divisions)
	return out
}

// Count is how many Directions there are: the binomial coefficient of
// m+divisions-1 over m-1; limit+1 when there are more than limit.
func Count(m, divisions, limit int) int {
	count := 1
	for k := 1; k < m; k++ {
		count = count * (divisions + k) / k // exact: a binomial coefficient at each step
		if count > limit {
			return limit + 1
		}
	}
	return count
}

// Divisions is the largest number of divisions, at least 1, for which there are
// at most limit directions. m must be at least 2.
func Divisions(m, limit int) int {
	divisions := 1
	for Count(m, divisions+1, limit) <= limit {
		divisions++
	}
	return divisions
}
