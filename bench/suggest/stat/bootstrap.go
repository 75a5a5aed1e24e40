package stat

import "github.com/vernier-ml/vernier/suggest/numeric/rng"

// Interval is a mean with the ends of its 95 % confidence interval.
type Interval struct {
	Mean, Low, High float64
}

// ClusterBootstrap is the mean of values that come in clusters, and within a
// cluster in tasks: the mean over all tasks of the mean over a task's values. The
// interval is that of the percentile bootstrap which draws clusters with
// replacement, and then each task's values (Davison and Hinkley, "Bootstrap
// methods and their application", 1997, section 3.8). Equal arguments give equal
// answers.
func ClusterBootstrap(clusters [][][]float64, repeats int) Interval {
	stream := rng.New(0, "benchmark", 0, "bootstrap")
	means := make([]float64, repeats)
	for b := range means {
		sum, tasks := 0.0, 0
		for range clusters {
			cluster := clusters[stream.Uint64N(uint64(len(clusters)))]
			for _, task := range cluster {
				taskSum := 0.0
				for range task {
					taskSum += task[stream.Uint64N(uint64(len(task)))]
				}
				sum += taskSum / float64(len(task))
			}
			tasks += len(cluster)
		}
		means[b] = sum / float64(tasks)
	}
	var all []float64
	for _, cluster := range clusters {
		for _, task := range cluster {
			all = append(all, Mean(task))
		}
	}
	return Interval{Mean: Mean(all), Low: Quantile(means, 0.025), High: Quantile(means, 0.975)}
}
