package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type logsOptions struct {
	follow    bool
	pod       string
	container string
	tail      int64
	previous  bool
}

func newLogsCommand(open opener) *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:   "logs EXPERIMENT/TRIAL",
		Short: "Print the output of a trial",
		Long: `Print the output of a trial's primary container. The embedded control plane keeps
the output of trials that have ended, even when their pods are gone. Of a job of
several pods it is the one that is measured; a note on standard error names the others,
which --pod chooses. Only the
newest part of a long log is kept; a note on standard error says so.`,
		Example: `  vernier logs charlm/12 -f
  vernier logs charlm/best
  vernier logs mnist/3 --pod worker-1
  vernier logs charlm/latest --container metrics-logger-and-collector`,
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return logs(cmd.Context(), o, args[0], streams{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}, open)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "follow the log until the container ends; wait for it to start")
	f.StringVarP(&o.container, "container", "c", "", "container; the trial's primary container when empty")
	f.StringVar(&o.pod, "pod", "", "pod of a job of several: its name, or the end of it, as worker-1; the one that is measured when empty")
	f.Int64Var(&o.tail, "tail", -1, "print the last lines only; -1 prints all")
	f.BoolVarP(&o.previous, "previous", "p", false, "print the run before the last restart")
	return cmd
}

func logs(ctx context.Context, o logsOptions, text string, s streams, open opener) error {
	if o.tail < -1 {
		return usageErrorf("--tail %d: write a number of lines, or -1 for all", o.tail)
	}
	session, err := open(ctx, false)
	if err != nil {
		return err
	}
	found, err := session.findTrial(ctx, text)
	if err != nil {
		return err
	}
	if err := logsElsewhere(found.Object); err != nil {
		return err
	}
	o.container = cmp.Or(o.container, found.Object.Spec.PrimaryContainerName)
	clientset, err := kubernetes.NewForConfig(session.config)
	if err != nil {
		return err
	}
	reader := logReader{client: session.client, clientset: clientset, options: o, home: session.home, notes: s.err}
	return reader.print(ctx, found.Object, withColors(s.out))
}

// logsElsewhere is an error for a trial that no job runs: there is no output of it here.
func logsElsewhere(t *v1beta1.Trial) error {
	if t.Spec.RunSpec != nil {
		return nil
	}
	lease, _ := t.Lease()
	worker := "the program that ran it"
	if lease.Worker != "" {
		worker = "its worker " + lease.Worker
	}
	return notFoundErrorf("no job runs trial %s, so its output is not here: see where %s writes it; vernier describe and vernier curve show what it reported", t.Name, worker)
}

type logReader struct {
	client    client.Client
	clientset kubernetes.Interface
	options   logsOptions
	home      string
	notes     io.Writer // for remarks about the log; unused without a home
}

// print copies the log of the trial's newest primary pod to out, or the archived
// log when the trial has ended and its pods are gone.
func (r logReader) print(ctx context.Context, trial *v1beta1.Trial, out io.Writer) error {
	gone, told := false, false
	return wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (done bool, err error) {
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(trial), trial); err != nil {
			return false, fmt.Errorf("read trial %s: %w", trial.Name, err)
		}
		pod, others, err := r.chosenPod(ctx, trial)
		switch {
		case err != nil:
			return false, err
		case pod != nil:
			if r.options.pod == "" && len(others) > 0 && !told {
				told = true
				fmt.Fprintf(r.notes, "vernier: this is pod %s; --pod shows another: %s\n", pod.Name, strings.Join(others, ", "))
			}
			err := r.printPod(ctx, pod, out)
			// A pod deleted between the two calls leaves an archived log.
			gone = apierrors.IsNotFound(err) && !gone
			if gone || r.mayStart(err) {
				return false, nil
			}
			return true, err
		case newTrialView(trial).finished():
			return true, r.archived(trial, out)
		case !r.options.follow:
			return false, notFoundErrorf("trial %s has no pod yet; use -f to wait for it", trial.Name)
		}
		return false, nil
	})
}

func (r logReader) printPod(ctx context.Context, pod *corev1.Pod, out io.Writer) error {
	if err := r.checkContainer(pod); err != nil {
		return err
	}
	if err := r.noteOlder(pod); err != nil {
		return err
	}
	return r.stream(ctx, pod, out)
}

// chosenPod is the newest pod that was asked for, or that the trial's metrics come from;
// nil if there is none. others are the ends of the other pods' names.
func (r logReader) chosenPod(ctx context.Context, trial *v1beta1.Trial) (chosen *corev1.Pod, others []string, err error) {
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(trial.Namespace), client.MatchingLabels{v1beta1.LabelTrial: trial.Name}); err != nil {
		return nil, nil, fmt.Errorf("list the pods of trial %s: %w", trial.Name, err)
	}
	slices.SortStableFunc(pods.Items, func(a, b corev1.Pod) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	for i, p := range pods.Items {
		if chosen == nil && r.wants(trial, p.Name, p.Labels) {
			chosen = &pods.Items[i]
		} else if p.DeletionTimestamp == nil {
			others = append(others, strings.TrimPrefix(p.Name, trial.Name+"-"))
		}
	}
	slices.Sort(others)
	if chosen == nil && !r.options.follow {
		err = r.noSuchPod(trial, others)
	}
	return chosen, others, err
}

// wants says whether the log of a pod is asked for.
func (r logReader) wants(trial *v1beta1.Trial, name string, labels map[string]string) bool {
	if r.options.pod == "" {
		return trainer.Reports(trial.Spec.PrimaryPodLabels, labels)
	}
	return name == r.options.pod || strings.HasSuffix(name, "-"+r.options.pod)
}

// noSuchPod is an error where a pod was asked for and there are only others.
func (r logReader) noSuchPod(trial *v1beta1.Trial, others []string) error {
	if r.options.pod == "" || len(others) == 0 {
		return nil
	}
	return notFoundErrorf("trial %s has no pod %s: it has %s", trial.Name, r.options.pod, strings.Join(others, ", "))
}

func (r logReader) stream(ctx context.Context, pod *corev1.Pod, out io.Writer) error {
	options := &corev1.PodLogOptions{Container: r.options.container, Follow: r.options.follow, Previous: r.options.previous}
	if r.options.tail >= 0 {
		options.TailLines = &r.options.tail
	}
	stream, err := r.clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return fmt.Errorf("read the log of container %s of pod %s: %w", r.options.container, pod.Name, err)
	}
	defer stream.Close()
	_, err = io.Copy(out, stream)
	return err
}

// mayStart reports whether err means that the container has not started yet. An
// earlier run that does not exist never will.
func (r logReader) mayStart(err error) bool {
	var status apierrors.APIStatus
	return r.options.follow && !r.options.previous && errors.As(err, &status) && apierrors.IsBadRequest(err)
}

// checkContainer is an error with the pod's containers when the wanted one is not
// among them.
func (r logReader) checkContainer(pod *corev1.Pod) error {
	var names []string
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		names = append(names, c.Name)
	}
	if slices.Contains(names, r.options.container) {
		return nil
	}
	return notFoundErrorf("pod %s has no container %q: it has %s", pod.Name, r.options.container, strings.Join(names, ", "))
}
