package operator

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func xgboost() framework {
	return framework{
		kind: "XGBoostJob", plural: "xgboostjobs", field: "xgbReplicaSpecs", types: []string{"Master", "Worker"},
		container: "xgboost", portName: "xgboostjob-port", defaultPort: 9999, restart: never,
		leaders: []string{"Master"}, workersDone: allWorkers,
		check: func(j *job) error {
			if j.of("Master") == nil {
				return fault("spec.xgbReplicaSpecs.Master", "is missing: an XGBoostJob needs a master")
			}
			return nil
		},
		environ: xgboostEnviron,
	}
}

// xgboostEnviron tells of the master, and LightGBM of the workers.
func xgboostEnviron(j *job, s seat, pod *corev1.PodSpec) {
	rank := s.index
	if s.replica == "Worker" {
		rank += j.count("Master")
	}
	host, port := j.address("Master", 0)
	env := []corev1.EnvVar{
		number("MASTER_PORT", port), variable("MASTER_ADDR", host),
		number("WORLD_SIZE", j.total()), number("RANK", rank), variable("PYTHONUNBUFFERED", "1"),
	}
	if j.total() > 1 {
		var workers []string
		for i := range j.total() - 1 {
			worker, _ := j.address("Worker", i)
			workers = append(workers, worker)
		}
		env = append(env, number("WORKER_PORT", j.port("Worker")), variable("WORKER_ADDRS", strings.Join(workers, ",")))
	}
	inAll(pod, env...)
}
