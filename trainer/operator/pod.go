package operator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/trainer"
)

// AnnotationServerDelay of a job is how long its parameter servers outlive its
// success, as 30s or 5m. Default: 30s.
const AnnotationServerDelay = "vernier.ml/server-delay"

const (
	defaultServerDelay = 30 * time.Second
	// annotationRestarts of a pod is how often pods of its name had failed before it.
	annotationRestarts = "vernier.ml/restarts"
)

// The training operator's labels.
const (
	labelOperatorName = "training.kubeflow.org/operator-name"
	labelJobName      = "training.kubeflow.org/job-name"
	labelReplicaType  = "training.kubeflow.org/replica-type"
	labelReplicaIndex = "training.kubeflow.org/replica-index"
	labelJobRole      = "training.kubeflow.org/job-role"
)

// labels select the pods of one type.
func (j *job) labels(replica string) map[string]string {
	return map[string]string{
		labelOperatorName: strings.ToLower(j.kind) + "-controller",
		labelJobName:      j.Name,
		labelReplicaType:  strings.ToLower(replica),
	}
}

func (j *job) meta(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: j.Namespace, Name: name, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&j.ObjectMeta, j.gvk())},
	}
}

// objects are what is made for pods that are missing: the pods come last.
func (j *job) objects(missing []seat) (all []client.Object) {
	if len(missing) > 0 && j.beside != nil {
		all = j.beside(j)
	}
	if len(missing) > 0 && j.gang != nil {
		all = append(all, j.podGroup())
	}
	for _, s := range missing {
		pod := j.pod(s)
		all = append(all, j.service(s, pod), pod)
	}
	return all
}

// pod makes a pod of the job.
func (j *job) pod(s seat) *corev1.Pod {
	r := j.of(s.replica)
	template := r.template.DeepCopy()
	labels := template.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, j.labels(s.replica))
	labels[labelReplicaIndex], labels[trainer.LabelOperator] = strconv.Itoa(s.index), "true"
	if j.isMaster(s) {
		labels[labelJobRole] = "master"
	}
	p := &corev1.Pod{ObjectMeta: j.meta(j.podName(s.replica, s.index), labels), Spec: template.Spec}
	p.Annotations, p.Finalizers = template.Annotations, template.Finalizers
	if n := j.status.Restarts[p.Name]; n > 0 {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[annotationRestarts] = strconv.Itoa(int(n))
	}
	p.Spec.RestartPolicy = corev1.RestartPolicy(r.restart)
	if r.restart == exitCode {
		p.Spec.RestartPolicy = corev1.RestartPolicyNever // the operator restarts it
	}
	j.listen(&p.Spec)
	j.environ(j, s, &p.Spec)
	j.join(p, s.replica)
	return p
}

// listen gives the container that trains the port of its kind, if it has none.
func (j *job) listen(pod *corev1.PodSpec) {
	c := j.main(pod)
	if j.portName == "" || slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
		return p.Name == j.portName || p.ContainerPort == j.defaultPort && protocol(p) == corev1.ProtocolTCP
	}) {
		return
	}
	c.Ports = append(c.Ports, corev1.ContainerPort{Name: j.portName, ContainerPort: j.defaultPort, Protocol: corev1.ProtocolTCP})
}

func protocol(p corev1.ContainerPort) corev1.Protocol { return cmp.Or(p.Protocol, corev1.ProtocolTCP) }

// service gives a pod its name in the cluster's DNS, before the pod is ready too:
// the pods of a job wait for one another.
func (j *job) service(s seat, pod *corev1.Pod) *corev1.Service {
	selector := j.labels(s.replica)
	selector[labelReplicaIndex] = strconv.Itoa(s.index)
	labels := maps.Clone(selector)
	labels[trainer.LabelOperator] = "true"
	svc := &corev1.Service{
		ObjectMeta: j.meta(j.podName(s.replica, s.index), labels),
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: selector, PublishNotReadyAddresses: true},
	}
	for _, p := range j.main(&pod.Spec).Ports {
		port := corev1.ServicePort{Name: p.Name, Port: p.ContainerPort, Protocol: protocol(p)}
		if slices.ContainsFunc(svc.Spec.Ports, func(q corev1.ServicePort) bool { return q.Port == port.Port && q.Protocol == port.Protocol }) {
			continue
		}
		if port.Name == "" {
			port.Name = fmt.Sprintf("port-%d", port.Port)
			if port.Protocol != corev1.ProtocolTCP {
				port.Name += "-" + strings.ToLower(string(port.Protocol))
			}
		}
		svc.Spec.Ports = append(svc.Spec.Ports, port)
	}
	return svc
}
