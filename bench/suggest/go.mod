module github.com/vernier-ml/vernier/bench/suggest

go 1.26.0

require (
	github.com/c-bata/goptuna v0.9.0
	github.com/google/go-cmp v0.7.0
	github.com/vernier-ml/vernier v0.0.0
)

require gonum.org/v1/gonum v0.17.0

replace github.com/vernier-ml/vernier => ../..
