package operator

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func pytorch() framework {
	return framework{
		kind: "PyTorchJob", plural: "pytorchjobs", field: "pytorchReplicaSpecs", types: []string{"Master", "Worker"},
		container: "pytorch", portName: "pytorchjob-port", defaultPort: 23456, restart: onFailure,
		leaders: []string{"Master"}, worker0: true,
		check: checkPyTorch, environ: pytorchEnviron,
		workersDone: func(j *job, t tally) bool {
			return allWorkers(j, t) || j.spec.ElasticPolicy != nil && t.of("Worker").Succeeded > 0
		},
	}
}

// elasticPolicy is that of torchrun.
type elasticPolicy struct {
	MinReplicas  *int32  `json:"minReplicas"`
	MaxReplicas  *int32  `json:"maxReplicas"`
	RDZVBackend  string  `json:"rdzvBackend"`
	RDZVPort     *int32  `json:"rdzvPort"`
	RDZVHost     string  `json:"rdzvHost"`
	RDZVID       *string `json:"rdzvId"`
	RDZVConf     []pair  `json:"rdzvConf"`
	Standalone   bool    `json:"standalone"`
	NProcPerNode *int32  `json:"nProcPerNode"`
	MaxRestarts  *int32  `json:"maxRestarts"`
}

type pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func checkPyTorch(j *job) error {
	if j.spec.ElasticPolicy != nil && j.of("Worker") == nil {
		return fault("spec.elasticPolicy", "needs Worker replicas")
	}
	return nil
}

func pytorchEnviron(j *job, s seat, pod *corev1.PodSpec) {
	env := []corev1.EnvVar{variable("PYTHONUNBUFFERED", "1")}
	perNode := j.spec.NprocPerNode
	if perNode == nil && (j.spec.ElasticPolicy == nil || j.spec.ElasticPolicy.NProcPerNode == nil) {
		perNode = ptr.To("auto")
	}
	if j.of("Master") != nil {
		processes, err := strconv.Atoi(ptr.Deref(perNode, ""))
		if err != nil {
			processes = 1 // auto, gpu, cpu
		}
		rank := s.index
		if s.replica == "Worker" {
			rank++
		}
		host, port := j.address("Master", 0)
		env = append(env,
			number("MASTER_PORT", port), number("PET_MASTER_PORT", port),
			variable("MASTER_ADDR", host), variable("PET_MASTER_ADDR", host),
			number("WORLD_SIZE", j.total()*processes), number("RANK", rank), number("PET_NODE_RANK", rank))
	}
	if perNode != nil {
		env = append(env, variable("PET_NPROC_PER_NODE", *perNode))
	}
	if j.spec.ElasticPolicy == nil {
		inAll(pod, append(env, number("PET_NNODES", j.total()))...)
		return
	}
	inAll(pod, append(env, elasticEnv(j)...)...)
}

func elasticEnv(j *job) []corev1.EnvVar {
	e, workers := j.spec.ElasticPolicy, int32(j.count("Worker"))
	least := ptr.Deref(e.MinReplicas, ptr.Deref(e.MaxReplicas, workers))
	most := ptr.Deref(e.MaxReplicas, ptr.Deref(e.MinReplicas, workers))
	host, port := j.address("Worker", 0)
	if host != loopback || e.RDZVHost != "" { // a port of one's own choice is that of other jobs on 127.0.0.1, too
		host, port = cmp.Or(e.RDZVHost, host), ptr.Deref(e.RDZVPort, port)
	}
	env := []corev1.EnvVar{
		variable("PET_RDZV_ENDPOINT", fmt.Sprintf("%s:%d", host, port)),
		variable("PET_RDZV_BACKEND", cmp.Or(e.RDZVBackend, "c10d")),
		variable("PET_NNODES", fmt.Sprintf("%d:%d", least, most)),
	}
	if e.MaxRestarts != nil {
		env = append(env, number("PET_MAX_RESTARTS", *e.MaxRestarts))
	}
	if e.NProcPerNode != nil {
		env = append(env, number("PET_NPROC_PER_NODE", *e.NProcPerNode))
	}
	if e.RDZVID != nil {
		env = append(env, variable("PET_RDZV_ID", *e.RDZVID))
	}
	if len(e.RDZVConf) > 0 {
		var conf []string
		for _, c := range e.RDZVConf {
			conf = append(conf, c.Key+"="+c.Value)
		}
		env = append(env, variable("PET_RDZV_CONF", strings.Join(conf, ",")))
	}
	if e.Standalone {
		env = append(env, variable("PET_STANDALONE", ""))
	}
	return env
}
