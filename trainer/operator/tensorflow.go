package operator

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func tensorflow() framework {
	return framework{
		kind: "TFJob", plural: "tfjobs", field: "tfReplicaSpecs", types: []string{"Chief", "Master", "PS", "Worker", "Evaluator"},
		container: "tensorflow", portName: "tfjob-port", defaultPort: 2222, restart: never,
		leaders: []string{"Chief", "Master"}, worker0: true, lasting: []string{"PS"}, dynamic: true,
		check: valid, environ: tensorflowEnviron,
		workersDone: func(j *job, t tally) bool {
			return allWorkers(j, t) || j.spec.SuccessPolicy != "AllWorkers" && t.first
		},
	}
}

// tensorflowEnviron writes TF_CONFIG, which a job of one pod does without.
func tensorflowEnviron(j *job, s seat, pod *corev1.PodSpec) {
	if j.total() == 1 {
		return
	}
	type task struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
	}
	self := task{strings.ToLower(s.replica), s.index}
	var config any
	if j.spec.EnableDynamicWorker {
		type cluster struct {
			Worker map[int]string `json:"worker"`
			PS     []string       `json:"ps"`
		}
		sparse := cluster{Worker: map[int]string{}, PS: []string{}}
		switch s.replica {
		case "PS":
			sparse.PS = append(sparse.PS, j.endpoints("PS")[s.index])
		case "Worker":
			sparse.PS = append(sparse.PS, j.endpoints("PS")...)
			sparse.Worker[s.index] = j.endpoints("Worker")[s.index]
		}
		config = struct {
			Cluster cluster `json:"cluster"`
			Task    task    `json:"task"`
		}{sparse, self}
	} else {
		cluster := map[string][]string{}
		for _, r := range j.replicas {
			cluster[strings.ToLower(r.name)] = j.endpoints(r.name)
		}
		config = struct {
			Cluster     map[string][]string `json:"cluster"`
			Task        task                `json:"task"`
			Environment string              `json:"environment"`
		}{cluster, self, "cloud"}
	}
	text, err := json.Marshal(config)
	if err != nil {
		panic(fmt.Sprintf("TF_CONFIG of strings and numbers: %v", err))
	}
	for i := range pod.Containers {
		if pod.Containers[i].Name == j.container {
			pod.Containers[i].Env = append(pod.Containers[i].Env, variable("TF_CONFIG", string(text)))
			return
		}
	}
}

// endpoints are the addresses of a type's pods, as TF_CONFIG writes them.
func (j *job) endpoints(replica string) []string {
	all := []string{}
	for i := range j.count(replica) {
		all = append(all, j.endpoint(replica, i))
	}
	return all
}

func (j *job) endpoint(replica string, index int) string {
	host, port := j.address(replica, index)
	if host == loopback {
		return fmt.Sprintf("%s:%d", host, port)
	}
	domain := j.Namespace + ".svc"
	if custom := os.Getenv("CUSTOM_CLUSTER_DOMAIN"); custom != "" {
		domain += "." + custom
	}
	return fmt.Sprintf("%s.%s:%d", host, domain, port)
}
