package algorithm_test

import (
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
)

// A forest in the place of the Gaussian process keeps the contract too.
func TestContractOfForests(t *testing.T) {
	r, ok := algorithm.Get("bayesianoptimization")
	if !ok {
		t.Fatal("there is no bayesianoptimization")
	}
	build := r.New
	r.New = func(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
		return build(space, append(settings[:len(settings):len(settings)], suggest.Setting{Name: "base_estimator", Value: "ET"}))
	}
	holdToContract(t, r)
}
