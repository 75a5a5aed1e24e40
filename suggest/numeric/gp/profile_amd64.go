package gp

// matern52x4 is matern52 for n squared distances, a multiple of 4 and at least
// 4. slopes may be nil.
//
//go:noescape
func matern52x4(n int, table *maternTable, roots *[64]float64, r2, slopes *float64)
