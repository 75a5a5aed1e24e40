package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/local/shim"
)

const (
	// contentRefresh is how often ConfigMaps, Secrets and the like are brought
	// up to date in the volumes of running pods.
	contentRefresh = 60 * time.Second
	// gpuPatience is how long a pod waits for GPUs whose last pod is ending.
	gpuPatience = 10 * time.Second
	// callTimeout bounds one exchange with the API server or a shim.
	callTimeout = 15 * time.Second
	// signalTimeout bounds a signal: a shim that takes longer hangs.
	signalTimeout = 5 * time.Second
	// shutdownTimeout bounds the orderly end of a shim.
	shutdownTimeout = 11 * time.Second
)

// admit decides once whether the node takes the pod. It reports whether the pod
// is held back for now.
func (w *worker) admit(ctx context.Context, now time.Time, next *decision) (held bool) {
	if w.admitted || w.v.Pod.DeletionTimestamp != nil || w.v.Gone {
		return false
	}
	reason := checkSpec(w.v.Pod, w.mounts)
	if reason == nil && w.mounts != shim.MountsNone { // where paths are mapped, nothing is covered
		reason = checkShadowed(w.v.Pod)
	}
	if reason == nil {
		reason, held = w.pods.admit(w.v.Pod, w.capacity, max(w.parallelism, 1))
	}
	if held {
		w.hold(ctx, now, next)
		return true
	}
	w.admitted = true
	w.v.StartTime = now
	if reason != nil {
		w.reject(*reason)
	}
	return false
}

func (w *worker) reject(why verdict) {
	w.v.Rejected = &why
	w.pods.settle(w.v.Pod.UID)
	w.event(corev1.EventTypeWarning, why.Reason, why.Message)
}

// prepare brings up what containers need before the first can start: the
// shim, the GPUs and the volumes. Later it keeps the volumes' content fresh.
func (w *worker) prepare(ctx context.Context, now time.Time, next *decision) {
	if w.v.Rejected != nil || w.torn {
		return
	}
	s, stopping := podStop(&w.v, now)
	if stopping && w.known || !w.known && stopping && s.Deleted && !w.hasDir() {
		w.known = true
		return
	}
	if w.v.SandboxReady {
		w.refreshVolumes(ctx, next)
		return
	}
	// A refresh that still runs writes the same files.
	if w.refresh.running || w.known && stopping {
		return
	}
	if now.Before(w.sandbox.next) {
		next.wakeAt(w.sandbox.next)
		return
	}
	if w.sandbox.running || !w.takeGPUs(now) {
		return
	}
	pod, f := w.v.Pod, w.facts()
	w.begin(ctx, &w.sandbox, next, "prepare the pod", func(callCtx context.Context) (func(), error) {
		return w.makeSandbox(ctx, callCtx, pod, f)
	})
}

func (w *worker) hasDir() bool {
	_, err := os.Stat(w.layout.shim(w.v.Pod.UID))
	return err == nil
}

// takeGPUs allocates the pod's GPUs. It reports whether to go on.
func (w *worker) takeGPUs(now time.Time) bool {
	gpus, err := w.gpuBook.Allocate(w.v.Pod)
	switch {
	case err == nil:
		w.gpus = gpus
		return true
	case errors.Is(err, errNoGPU) && now.Sub(w.v.StartTime) > gpuPatience:
		w.reject(verdict{Reason: "UnexpectedAdmissionError", Message: err.Error()})
	case !errors.Is(err, errNoGPU):
		w.log.Error(err, "cannot allocate GPUs; trying again")
	}
	w.sandbox.failed(now)
	return false
}

func (w *worker) facts() facts {
	return facts{HostIP: w.hostIP, PodIP: w.v.PodIP, Allocatable: w.capacity}
}

// makeSandbox starts or finds the pod's shim and makes its volumes, side by side.
// ctx is the worker's own.
func (w *worker) makeSandbox(ctx, callCtx context.Context, pod *corev1.Pod, f facts) (done func(), err error) {
	var set volumeSet
	var box sandbox
	var volumesErr, shimErr error
	var both sync.WaitGroup
	both.Go(func() { set, volumesErr = w.makeVolumes(callCtx, pod, f) })
	both.Go(func() { box, shimErr = w.spawn(callCtx, pod) })
	both.Wait()
	return func() {
		if shimErr != nil {
			w.warnSandbox("FailedCreatePodSandBox", shimErr)
			return
		}
		if w.shim == nil {
			w.shim, w.v.PodIP = box.shim, box.address
			w.merge(box.state)
			w.adopt()
			go w.watch(ctx, box.shim, box.state.Revision)
			w.warn(box)
		}
		w.known = true
		if volumesErr != nil {
			w.warnSandbox("FailedMount", volumesErr)
			return
		}
		w.volumes = set
		w.v.SandboxReady = true
		w.refresh.next = w.refreshTime()
	}, errors.Join(shimErr, volumesErr)
}

func (w *worker) makeVolumes(ctx context.Context, pod *corev1.Pod, f facts) (volumeSet, error) {
	return (&volumeMaker{layout: w.layout, from: w.tokens}).Make(ctx, pod, f)
}

// sandbox is what the containers of a pod run in.
type sandbox struct {
	shim    *shim.Client
	state   shim.State
	address string
	// refused is why the pod has no network of its own, if it should have one.
	refused string
}

func (w *worker) spawn(ctx context.Context, pod *corev1.Pod) (box sandbox, err error) {
	own := w.hasNetwork(pod.UID)
	if _, err := os.Stat(w.layout.podFile(pod.UID)); err != nil { // it keeps what it was started with
		if own, err = w.ownNetwork(ctx, pod); err != nil {
			return box, err
		}
		if own && w.network.shared != "" {
			own, box.refused = false, w.network.shared
		}
		if err := w.writeIdentity(pod, own); err != nil {
			return box, err
		}
	}
	o := w.shimOptions(pod.UID)
	if own { // where no shim is left then, only the network can start one inside
		if box.address, err = w.network.start(ctx, pod, o, w.layout.names(pod.UID)); err == nil {
			box.shim, box.state, err = shim.Attach(ctx, o.Dir)
		}
		return box, err
	}
	box.address = w.hostIP
	if box.shim, err = shim.Spawn(ctx, o); err != nil {
		return box, err
	}
	box.state, err = box.shim.State(ctx)
	return box, err
}

// ownNetwork decides whether a pod should get a network of its own.
func (w *worker) ownNetwork(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if !w.network.synced(ctx) {
		return false, fmt.Errorf("waiting for the list of Services: %w", ctx.Err())
	}
	services, err := w.network.services.Services(pod.Namespace).List(labels.Everything())
	if err != nil {
		return false, err
	}
	parallelism := int32(1)
	if _, job, ok := jobOf(pod); ok && isIndexed(pod) && !wantsNetwork(pod, parallelism, services) {
		if parallelism, err = w.cluster.parallelism(ctx, pod.Namespace, job); err != nil {
			return false, err
		}
	}
	return wantsNetwork(pod, parallelism, services), nil
}

func (n *node) hasNetwork(uid types.UID) bool {
	_, err := os.Stat(n.layout.names(uid))
	return err == nil
}

// warnSandbox tells of a failure that will be tried again.
func (w *worker) warnSandbox(reason string, err error) {
	if !w.v.Gone && !errors.Is(err, context.Canceled) {
		w.event(corev1.EventTypeWarning, reason, err.Error())
	}
}

// adopt completes what the shim knows of the past by what the object says.
func (w *worker) adopt() {
	s := &w.v.Pod.Status
	for _, r := range recordedRuns(slices.Concat(s.InitContainerStatuses, s.ContainerStatuses)) {
		if newest, ok := w.v.last(r.Name); !ok || newest.Run < r.Run {
			c := w.v.container(r.Name)
			c.Runs, _ = mergeRun(c.Runs, r)
		}
	}
}

// warn says once what does not work on this machine, and matters to the pod.
func (w *worker) warn(box sandbox) {
	if w.warned {
		return
	}
	w.warned = true
	if w.mounts == shim.MountsNone && mountsAnything(w.v.Pod) {
		w.event(corev1.EventTypeWarning, "MountPathsRewritten", "mount paths are mapped, not mounted: paths in the command, the environment and the working directory are replaced; a path written inside the program is not, and "+
			shim.EnvPathMap+" lists the pairs")
	}
	if box.refused != "" {
		w.event(corev1.EventTypeWarning, "NetworkShared", "pods share the machine's network here: this pod has no address of its own, names of Services do not resolve, and two pods cannot listen on the same port (a job that Vernier itself runs, as a PyTorchJob, names 127.0.0.1 and ports of their own to its pods): "+box.refused)
	}
	if len(w.v.Pod.Spec.HostAliases) > 0 && !w.hasNetwork(w.v.Pod.UID) {
		w.event(corev1.EventTypeWarning, "Ignored", "this pod has the machine's network and its /etc/hosts: hostAliases have no effect; the annotation "+contract.AnnotationNetwork+": "+contract.NetworkPod+" gives it its own")
	}
}

func mountsAnything(pod *corev1.Pod) bool {
	for _, c := range allContainers(&pod.Spec) {
		for _, m := range c.VolumeMounts {
			// The token volume is in every pod, used or not.
			if m.MountPath != "/var/run/secrets/kubernetes.io/serviceaccount" {
				return true
			}
		}
	}
	return false
}

// watch follows a shim and posts what it says, until it or the pod ends.
func (w *worker) watch(ctx context.Context, client *shim.Client, after uint64) {
	for state, err := range client.Watch(ctx, after) {
		if err != nil {
			if ctx.Err() == nil {
				w.post(ctx, func() { w.shimLost(client, err) })
			}
			return
		}
		w.post(ctx, func() { w.merge(state) })
	}
}

// shimLost brings up a new shim, which finds what became of the old one's runs.
func (w *worker) shimLost(client *shim.Client, err error) {
	if w.shim != client || w.torn || w.teardown.running {
		return
	}
	w.log.Error(err, "the pod's shim is gone; starting another")
	w.shim = nil
	w.v.SandboxReady = false
	w.known = false
	w.sandbox = task{}
}

func (w *worker) refreshTime() time.Time {
	at := time.Now().Add(contentRefresh)
	if r := w.volumes.Renew; !r.IsZero() && r.Before(at) {
		return r
	}
	return at
}

func (w *worker) refreshVolumes(ctx context.Context, next *decision) {
	if len(w.v.Pod.Spec.Volumes) == 0 {
		return
	}
	pod, f := w.v.Pod, w.facts()
	w.begin(ctx, &w.refresh, next, "refresh the pod's volumes", func(ctx context.Context) (func(), error) {
		set, err := w.makeVolumes(ctx, pod, f)
		if err != nil {
			return nil, err
		}
		return func() {
			w.volumes = set
			w.refresh.next = w.refreshTime()
		}, nil
	})
}

// tokenKeeper remembers a pod's tokens until they are to be renewed.
type tokenKeeper struct {
	volumeSource
	now    func() time.Time
	tokens map[string]heldToken
}

type heldToken struct {
	token string
	renew time.Time
}

// Token is not safe for concurrent use; a pod's volumes are made one at a time.
func (k *tokenKeeper) Token(ctx context.Context, pod *corev1.Pod, src *corev1.ServiceAccountTokenProjection) (string, time.Time, error) {
	key := fmt.Sprintf("%s\x00%d", src.Audience, ptr.Deref(src.ExpirationSeconds, 0))
	if held, ok := k.tokens[key]; ok && k.now().Before(held.renew) {
		return held.token, held.renew, nil
	}
	token, renew, err := k.volumeSource.Token(ctx, pod, src)
	if err != nil {
		return "", time.Time{}, err
	}
	if k.tokens == nil {
		k.tokens = map[string]heldToken{}
	}
	k.tokens[key] = heldToken{token, renew}
	return token, renew, nil
}
