package operator

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func mxnet() framework {
	return framework{
		kind: "MXJob", plural: "mxjobs", field: "mxReplicaSpecs",
		types:     []string{"Scheduler", "Server", "Worker", "TunerTracker", "TunerServer", "Tuner"},
		container: "mxnet", portName: "mxjob-port", defaultPort: 9091, restart: never,
		leaders: []string{"Scheduler", "Tuner"}, lasting: []string{"Server", "Worker"},
		check: valid, workersDone: allWorkers, environ: mxnetEnviron,
	}
}

func mxnetEnviron(j *job, s seat, pod *corev1.PodSpec) {
	type address struct {
		URL  string `json:"url"`
		Port int32  `json:"port"`
	}
	type task struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
	}
	config := struct {
		Cluster map[string][]address `json:"cluster"`
		Labels  map[string]string    `json:"labels"`
		Task    task                 `json:"task"`
	}{map[string][]address{}, map[string]string{}, task{strings.ToLower(s.replica), s.index}}
	for _, r := range j.replicas {
		name := strings.ToLower(r.name)
		config.Cluster[name] = []address{}
		for i := range r.count {
			host, port := j.address(r.name, i)
			config.Cluster[name] = append(config.Cluster[name], address{host, port})
		}
		config.Labels[name] = r.template.Annotations["tuner-server-key"]
	}
	text, err := json.Marshal(config)
	if err != nil {
		panic(fmt.Sprintf("MX_CONFIG of strings and numbers: %v", err))
	}
	var root address
	if all := config.Cluster["scheduler"]; len(all) > 0 {
		root = all[0]
	}
	env := []corev1.EnvVar{
		variable("MX_CONFIG", string(text)),
		number("DMLC_PS_ROOT_PORT", root.Port), variable("DMLC_PS_ROOT_URI", root.URL),
		number("DMLC_NUM_SERVER", j.count("Server")), number("DMLC_NUM_WORKER", j.count("Worker")),
		variable("DMLC_ROLE", config.Task.Type), variable("DMLC_USE_KUBERNETES", "1"),
	}
	if s.replica == "Worker" {
		env = append(env, number("DMLC_WORKER_ID", s.index))
	}
	inAll(pod, env...)
}
