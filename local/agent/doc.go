// Package agent is a Kubernetes node agent that runs pods as local processes.
//
// It registers one Node with an API server, watches the pods that the
// scheduler binds to it, and runs their containers with the rules of the
// kubelet: start order, restarts and back-off, phases and conditions,
// volumes, environment, termination with grace, logs and exec. No image is
// run; a mapping says which directories stand for an image, and by default
// that is the host.
//
// Each pod's containers are owned by a small process of their own (package
// shim), so the agent may die and find its pods again.
//
// What happens to a pod is decided by pure functions over a [view]: plan says
// what to do next, podStatus says what the pod's status is. A worker, one
// goroutine for each pod, gathers the view, acts, and publishes.
package agent
