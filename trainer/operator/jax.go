package operator

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

func jax() framework {
	return framework{
		kind: "JAXJob", plural: "jaxjobs", field: "jaxReplicaSpecs", types: []string{"Worker"},
		container: "jax", portName: "jaxjob-port", defaultPort: 6666, restart: never, worker0: true,
		check: valid, workersDone: allWorkers,
		environ: func(j *job, s seat, pod *corev1.PodSpec) {
			host, port := j.address("Worker", 0)
			inAll(pod,
				variable("PYTHONUNBUFFERED", "1"), number("COORDINATOR_PORT", port), variable("COORDINATOR_ADDRESS", host),
				number("NUM_PROCESSES", j.total()), number("PROCESS_ID", s.index),
				// jax.distributed.initialize() reads the address by itself; the others are named as in Trainer v2.
				variable("JAX_COORDINATOR_ADDRESS", fmt.Sprintf("%s:%d", host, port)),
				number("JAX_NUM_PROCESSES", j.total()), number("JAX_PROCESS_ID", s.index))
		},
	}
}
