package operator

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

func paddle() framework {
	return framework{
		kind: "PaddleJob", plural: "paddlejobs", field: "paddleReplicaSpecs", types: []string{"Master", "Worker"},
		container: "paddle", portName: "master", defaultPort: 36543, restart: onFailure,
		leaders: []string{"Master"}, lasting: []string{"Worker"}, check: valid, workersDone: allWorkers, environ: paddleEnviron,
	}
}

// paddleEnviron tells where the pods meet: at the master (with parameter servers), or
// at the first worker.
func paddleEnviron(j *job, s seat, pod *corev1.PodSpec) {
	env := []corev1.EnvVar{variable("PYTHONUNBUFFERED", "1"), variable("PADDLE_JOB_ID", j.Name), number("PADDLE_NNODES", j.total())}
	meeting := "Worker"
	if j.of("Master") != nil {
		meeting = "Master"
	}
	host, port := j.address(meeting, 0)
	if s.replica == meeting && s.index == 0 && host != loopback {
		host = "$(POD_IP_DUMMY)"
		env = append(env, corev1.EnvVar{Name: "POD_IP_DUMMY", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"},
		}})
	}
	env = append(env, variable("PADDLE_MASTER", fmt.Sprintf("%s:%d", host, port)))
	switch {
	case meeting == "Master" && s.replica == "Master":
		env = append(env, variable("PADDLE_SERVER_NUM", "1"))
	case meeting == "Master":
		env = append(env, variable("PADDLE_TRAINER_NUM", "1"))
	}
	inAll(pod, env...)
}
