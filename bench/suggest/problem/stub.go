package problem

type Curve struct{}
type Front struct{ Reference []float64 }
type Task struct{}
