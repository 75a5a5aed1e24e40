package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/controllers/restore"
	"github.com/vernier-ml/vernier/controllers/study"
)

const replayHelp = `Ask the algorithm of an experiment for each of its trials again, with what it knew then,
and say which trials it would propose otherwise now. That needs no cluster: what was
known is recorded in the trials, and results of trials that have ended are final.

Each trial that differs takes a line, and the last line sums up. A trial is not compared,
and the reason is given, where what was known then is not known any more: trials that were
deleted, results that were changed, trials that were made by hand or ran elsewhere. Where a
rule stops trials early, curves are read from the store. Algorithms that are services are
not asked. Between two versions of Vernier, or two kinds of processors, last digits may
differ: the last line says when that is so.

Exit codes: 0 all that can be compared are equal; 10 a trial differs; 1 nothing can be
compared.`

type replayOptions struct {
	output, file, store string
}

func newReplayCommand(open opener, own ownStore) *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay EXPERIMENT",
		Short: "Derive each suggestion again from history, and compare",
		Long:  replayHelp,
		Example: `  vernier replay charlm
  vernier kubectl get experiments,trials -o yaml > all.yaml; vernier replay charlm -f all.yaml`,
		Args: oneExperiment,
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace := ""
			if flag := cmd.Flag("namespace"); flag != nil {
				namespace = flag.Value.String()
			}
			read, err := o.reader(cmd.Context(), open, namespace, args[0])
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), read, own, cmd.OutOrStdout())
		},
	}
	outputFlag(cmd, &o.output, "text, or json: an object with all trials", "text", "json")
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "read the objects from a file that kubectl get -o yaml has written, of the namespace that -n names, if it does")
	cmd.Flags().StringVar(&o.store, "store", "", "store of the points (default: that of the embedded instance)")
	return cmd
}

// history is an experiment with its trials, and those that it learns from.
type history struct {
	experiment *v1beta1.Experiment
	trials     []*v1beta1.Trial
	earlier    []study.Earlier
}

// reader reads an experiment from where the options say. In a file it may be in any
// namespace if none is given.
func (o replayOptions) reader(ctx context.Context, open opener, namespace, name string) (*history, error) {
	if o.file != "" {
		return readHistory(o.file, namespace, name)
	}
	session, err := open(ctx, false)
	if err != nil {
		return nil, err
	}
	view, err := loadExperiment(ctx, session.client, session.key(name))
	if err != nil {
		return nil, err
	}
	return newHistory(view.Experiment, view.objects(), func(other string) ([]*v1beta1.Trial, error) {
		view, err := loadExperiment(ctx, session.client, session.key(other))
		if errors.As(err, new(*noExperiment)) {
			return nil, nil
		}
		return view.objects(), err
	})
}

// objects are the trials that there are, in order.
func (v experimentView) objects() []*v1beta1.Trial {
	var trials []v1beta1.Trial
	for _, t := range v.Trials {
		if t.Object != nil {
			trials = append(trials, *t.Object)
		}
	}
	return v1beta1.SortTrials(trials)
}

// readHistory reads an experiment from a backup.
func readHistory(file, namespace, name string) (*history, error) {
	experiments, trials, err := readObjects(file)
	if err != nil {
		return nil, err
	}
	of := func(e *v1beta1.Experiment) []*v1beta1.Trial {
		return v1beta1.SortTrials(slices.DeleteFunc(slices.Clone(trials), func(t v1beta1.Trial) bool { return !owns(e, &t) }))
	}
	var found *v1beta1.Experiment
	for i := range experiments {
		e := &experiments[i]
		switch {
		case e.Name != name || namespace != "" && e.Namespace != namespace:
		case found != nil && found.Namespace != e.Namespace:
			return nil, usageErrorf("%s has an experiment %s in the namespaces %s and %s: say which by -n", file, name, found.Namespace, e.Namespace)
		case found != nil:
			return nil, usageErrorf("%s has the experiment %s/%s twice", file, e.Namespace, name)
		default:
			found = e
		}
	}
	switch {
	case found == nil && namespace != "":
		return nil, notFoundErrorf("%s has no experiment %s/%s", file, namespace, name)
	case found == nil:
		return nil, notFoundErrorf("%s has no experiment %s", file, name)
	}
	return newHistory(found, of(found), func(other string) ([]*v1beta1.Trial, error) {
		i := slices.IndexFunc(experiments, func(e v1beta1.Experiment) bool { return e.Name == other && e.Namespace == found.Namespace })
		if i < 0 {
			return nil, nil
		}
		return of(&experiments[i]), nil
	})
}

func owns(e *v1beta1.Experiment, t *v1beta1.Trial) bool {
	return t.Namespace == e.Namespace && slices.ContainsFunc(t.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == e.UID })
}

// newHistory gathers what an algorithm may have known: the trials, and those of earlier
// experiments by their names.
func newHistory(e *v1beta1.Experiment, trials []*v1beta1.Trial, trialsOf func(experiment string) ([]*v1beta1.Trial, error)) (*history, error) {
	h := &history{experiment: e.DeepCopy(), trials: trials}
	v1beta1.SetDefaults(h.experiment)
	for _, w := range h.experiment.Spec.WarmStartFrom {
		trials, err := trialsOf(w.Experiment)
		if err != nil {
			return nil, err
		}
		if trials != nil {
			h.earlier = append(h.earlier, study.Earlier{WarmStart: w, Trials: trials})
		}
	}
	return h, nil
}

// readObjects reads experiments and trials from a backup.
func readObjects(path string) (experiments []v1beta1.Experiment, trials []v1beta1.Trial, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	objects, err := restore.Read(f)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, o := range objects {
		var e v1beta1.Experiment
		var t v1beta1.Trial
		switch o.GetKind() {
		case "Experiment":
			err = apiruntime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &e)
			experiments = append(experiments, e)
		case "Trial":
			err = apiruntime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &t)
			trials = append(trials, t)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %s %s: %w", path, o.GetKind(), client.ObjectKeyFromObject(o), err)
		}
	}
	return experiments, trials, nil
}

func (o replayOptions) run(ctx context.Context, h *history, own ownStore, out io.Writer) error {
	var scan study.Scan
	replayed := replayReport{Experiment: h.experiment.Name, Seed: h.experiment.Spec.Seed, By: version + " " + runtime.GOARCH}
	again := func() error {
		return study.Replay(ctx, h.experiment, h.trials, h.earlier, scan, func(r study.Replayed) {
			if line := replayed.add(r); line != "" && o.output == "text" {
				fmt.Fprintln(out, line)
			}
		})
	}
	var err error
	if h.experiment.Spec.EarlyStopping != nil {
		// The algorithm knew them.
		err = own.with(ctx, o.store, func(s collector.Store) error {
			scan = s.Scan
			return again()
		})
	} else {
		err = again()
	}
	if err != nil {
		return err
	}
	if o.output == "json" {
		if err := writeValue(out, "json", replayed); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(out, replayed.sum())
	}
	switch {
	case replayed.Differ > 0:
		return &exitError{code: exitDiffers, err: fmt.Errorf("%d of %d suggestions differ", replayed.Differ, replayed.Equal+replayed.Differ)}
	case replayed.Equal == 0 && len(h.trials) > 0:
		return errors.New("no trial can be compared")
	}
	return nil
}

// replayReport is what has come out.
type replayReport struct {
	Experiment string `json:"experiment"`
	Seed       *int64 `json:"seed,omitempty"`
	// Versions that have proposed the trials, and By that has asked again.
	Versions    []string        `json:"versions"`
	By          string          `json:"replayedBy"`
	Equal       int             `json:"equal"`
	Differ      int             `json:"differ"`
	NotCompared int             `json:"notCompared"`
	Trials      []replayedTrial `json:"trials"`

	reasons []string // in the order in which they came
	by      map[string][]string
}

type replayedTrial struct {
	Name        string       `json:"name"`
	Result      string       `json:"result"`
	Reason      string       `json:"reason,omitempty"`
	Differences []string     `json:"differences,omitempty"`
	Asked       *study.Asked `json:"asked,omitempty"`
}

// add takes in a trial, and is its line, empty for one that does not differ.
func (r *replayReport) add(t study.Replayed) (line string) {
	result := "equal"
	switch {
	case t.Reason != "":
		result = "not compared"
		r.NotCompared++
		if r.by == nil {
			r.by = map[string][]string{}
		}
		if r.by[t.Reason] == nil {
			r.reasons = append(r.reasons, t.Reason)
		}
		r.by[t.Reason] = append(r.by[t.Reason], t.Trial.Name)
	case len(t.Differences) > 0:
		result = "differs"
		r.Differ++
		line = t.Trial.Name + " differs: " + strings.Join(t.Differences, "; ")
	default:
		r.Equal++
	}
	if t.Asked != nil && !slices.Contains(r.Versions, t.Asked.Version) {
		r.Versions = append(r.Versions, t.Asked.Version)
	}
	r.Trials = append(r.Trials, replayedTrial{t.Trial.Name, result, t.Reason, t.Differences, t.Asked})
	return line
}

// sum is the result in words.
func (r *replayReport) sum() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d trials: %d equal, %d different, %d not compared", len(r.Trials), r.Equal, r.Differ, r.NotCompared)
	for _, reason := range r.reasons {
		names := r.by[reason]
		which := strings.Join(names[:min(3, len(names))], ", ")
		if more := len(names) - 3; more > 0 {
			which += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(&b, "\nnot compared: %s: %s", which, reason)
	}
	if len(r.Versions) > 0 && !slices.Equal(r.Versions, []string{r.By}) {
		fmt.Fprintf(&b, "\nproposed by version %s, replayed by %s", strings.Join(r.Versions, " and "), r.By)
	}
	return b.String()
}
