package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/cmd/vernier/script"
)

type runOptions struct {
	files       []string
	wait        bool
	replace     bool
	keep        bool
	lower       bool
	progress    string
	timeout     time.Duration
	requireGoal bool
	script      scriptOptions
	program     bool // the experiment is of a command line
}

const runHelp = `Tune a program, or run the experiment of a file: start the embedded control plane
if it is not running, show progress until the experiment ends, and print the best
trial.

A program is a Python script, anything that can be executed, or, after --, a whole
command line. Trials run it in the current directory, with the PATH and the virtual
environment of this shell. It gets its parameters as flags and prints its metrics;
--probe shows what is found of both. What follows -- goes to the program as it is, with
{lr} in place of a parameter's value, {trial} in place of the trial's name, {seed} of its seed. The same
command again goes on with the same experiment.

On a terminal, progress is a live table; elsewhere it is one line for each change.

Ctrl-C once: no new trials, and the running ones may finish. maxTrialCount is
lowered to the trials that exist; the same command again goes on (a file needs
resumePolicy LongRunning for that). Twice: leave at once; the running trials finish while
the control plane runs (with --keep=false, what this command started is stopped).

An experiment of the same name that has ended is not run again when nothing in it
changes: its best trial is printed. --replace runs it anew.

Exit codes: 0 the experiment succeeded; 1 error; 2 usage; 3 invalid experiment;
4 no such file; 6 the file would lower the limit of a running experiment, or another
search has the name; 7 server not reachable; 8 the experiment failed, no trial has a
result, or the program failed (with --probe); 9 it ended without reaching its goal
(with --require-goal); 124 timeout; 130 interrupted.`

func newRunCommand(g *global, open opener, stop func(context.Context, *session) error) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run PROGRAM -p NAME=FORM... --minimize METRIC [-- ARGUMENT...] | run -f FILE",
		Short: "Tune a program, or run the experiment of a file, with live progress",
		Long:  runHelp,
		Example: `  vernier run train.py -p 'lr=log(1e-5,1e-1)' -p 'layers=int(1,4)' --maximize accuracy -n 50 -j 4
  vernier run train.py --probe
  vernier run -p 'lr=log(1e-5,1e-1)' --minimize loss -- ./train --rate {lr} --out runs/{trial}
  vernier run -f experiment.yaml --timeout 1h --require-goal`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.timeout < 0 {
				return usageErrorf("--timeout %s is below zero: write how long to wait, such as 1h, or leave it out to wait forever", o.timeout)
			}
			s := streams{in: cmd.InOrStdin(), out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
			return o.start(cmd.Context(), args, s, open, stop)
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.files, "filename", "f", nil, "file or folder with the experiment and what it needs; - for standard input; may be given many times")
	f.BoolVar(&o.wait, "wait", true, "wait for the end of the experiment")
	f.BoolVar(&o.replace, "replace", false, "delete an experiment of the same name first, with its trials")
	f.BoolVar(&o.lower, "lower", false, "apply what lowers the maxTrialCount of a running experiment")
	f.BoolVar(&o.keep, "keep", true, "leave the control plane running afterwards; vernier down stops it")
	choiceFlag(cmd, &o.progress, "progress", "", "auto, live, plain or none", "auto", "live", "plain", "none")
	f.DurationVar(&o.timeout, "timeout", 0, "leave with exit code 124 after this time; the experiment goes on; 0 waits forever")
	f.BoolVar(&o.requireGoal, "require-goal", false, "leave with exit code 9 if the goal was not reached")
	if g != nil { // kubectl's plugin has no programs of this machine
		// Here -n is the number of trials, so that the namespace has no short form.
		f.StringVar(&g.namespace, "namespace", "", "namespace (default \"default\")")
		o.script.addFlags(cmd)
	}
	return cmd
}

// start finds out whether a program or a file is to run.
func (o *runOptions) start(ctx context.Context, args []string, s streams, open opener, stop func(context.Context, *session) error) error {
	isProgram := o.script.flags != nil
	if len(args) == 1 && len(o.files) == 0 && slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(args[0])) {
		o.files, args = args, nil
	}
	switch {
	case len(args) == 0 && len(o.files) == 0 && isProgram:
		return usageErrorf("say what to run: a program with its parameters (-p), or a file with -f")
	case len(args) == 0 && len(o.files) == 0:
		return usageErrorf("say what to run: a file with -f")
	case len(args) > 0 && (len(o.files) > 0 || !isProgram):
		return usageErrorf("run takes a file with -f, and no argument %q besides", args[0])
	case len(args) == 0:
		if isProgram {
			if err := o.script.onlyForPrograms(); err != nil {
				return err
			}
		}
		return run(ctx, *o, func() ([]*unstructured.Unstructured, error) { return readManifests(s.in, o.files) }, s, open, stop)
	}
	argv, err := program(args, os.Getenv)
	if err != nil {
		return err
	}
	if o.script.probe {
		return o.script.runProbe(ctx, argv, s)
	}
	experiment, err := o.script.experiment(ctx, argv, os.Getenv)
	if err != nil {
		return err
	}
	for _, hint := range []string{o.script.spec.Unread(), o.script.spec.Unknown()} {
		if hint != "" {
			fmt.Fprintf(s.err, "Warning: %s\n", hint)
		}
	}
	if o.script.dryRun {
		return writeValue(s.out, o.script.output, experiment.Object)
	}
	o.program = true
	return run(ctx, *o, func() ([]*unstructured.Unstructured, error) { return []*unstructured.Unstructured{experiment}, nil }, s, open, stop)
}

func run(ctx context.Context, o runOptions, read func() ([]*unstructured.Unstructured, error), s streams, open opener, stop func(context.Context, *session) error) (err error) {
	display, err := newDisplay(o.progress, s.err)
	if err != nil {
		return err
	}
	objects, err := read()
	if err != nil {
		return err
	}
	experiment, err := theExperiment(objects)
	if err != nil {
		return err
	}
	// Ctrl-C before there is an experiment ends the run, and what it has started.
	setup, release := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer release()
	session, err := open(setup, true)
	if session != nil && session.started && !o.keep {
		defer func() { err = errors.Join(err, stop(context.WithoutCancel(ctx), session)) }()
	}
	var before *v1beta1.Experiment
	if err == nil {
		err = o.fit(setup, session, experiment, s.err)
	}
	if err == nil {
		before, err = submit(setup, o, session, objects, experiment, s.err)
	}
	if setup.Err() != nil && ctx.Err() == nil {
		return &exitError{code: exitInterrupted, err: fmt.Errorf("interrupted before the experiment began: %w", context.Cause(setup))}
	}
	if err != nil {
		return inFlags(experiment, err)
	}
	release()
	key := session.keyOf(experiment)
	warnOfWorkdir(s, session, experiment)
	e := ending{requireGoal: o.requireGoal}
	if before != nil {
		view, err := loadExperiment(ctx, session.client, key)
		if err != nil {
			return err
		}
		if nothingRuns(before, view) {
			view.BestStep = session.bestStep(ctx, view)
			fmt.Fprintln(s.err, nothingRan(view, time.Now()))
			return conclude(view, e, s)
		}
	}
	if !o.wait {
		fmt.Fprintf(s.err, "experiment %s is running; see: vernier describe %s\n", key.Name, key.Name)
		return nil
	}
	view, err := waitForEnd(ctx, o.timeout, session, key, before, display)
	if err != nil {
		return err
	}
	view.BestStep = session.bestStep(ctx, view)
	_, e.told = display.(*plainDisplay)
	return conclude(view, e, s)
}

// fit says how the instance differs from this shell, or has a program use its GPUs.
func (o *runOptions) fit(ctx context.Context, s *session, experiment *unstructured.Unstructured, say io.Writer) error {
	if o.program {
		if err := o.script.checkWarm(ctx, s, s.keyOf(experiment), o.replace); err != nil {
			return err
		}
		return o.script.takeGPUs(ctx, s, experiment, say)
	}
	if s.note != "" {
		fmt.Fprintln(say, "vernier:", s.note)
	}
	return nil
}

// warnOfWorkdir says what of the experiment looks like paths of the caller's folder,
// which is not that of its trials.
func warnOfWorkdir(s streams, session *session, experiment *unstructured.Unstructured) {
	cwd, err := os.Getwd()
	if err != nil || session.home == "" {
		return
	}
	for _, hint := range workdirHints(experiment, cwd) {
		fmt.Fprintf(s.err, "Warning: %s\n", hint)
	}
}

// submit applies the files. It returns the experiment of that name that had ended
// before, if any.
func submit(ctx context.Context, o runOptions, s *session, objects []*unstructured.Unstructured, experiment *unstructured.Unstructured, say io.Writer) (before *v1beta1.Experiment, err error) {
	key := s.keyOf(experiment)
	if o.replace {
		if err := s.makeRoom(ctx, objects, experiment); err != nil {
			return nil, err
		}
	}
	if before, err = existing(ctx, s.client, key); err != nil {
		return nil, err
	}
	if before != nil && o.program {
		if err := adopt(before, experiment); err != nil {
			return nil, err
		}
	}
	if err := checkLimit(before, experiment, o.lower); err != nil {
		return nil, err
	}
	if o.program {
		noteFiles(before, experiment, filesOf(o.script.spec.Dir, o.script.spec.Argv), say)
	}
	if before != nil && !newExperimentView(before, nil).finished() {
		before = nil // it has no end that this run could mistake for its own
	}
	if o.program {
		var made v1beta1.Experiment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(experiment.Object, &made); err != nil {
			return nil, fmt.Errorf("read the experiment of this command line: %w", err)
		}
		s.words = func(text string) string { return script.InFlags(&made, text) }
	}
	if err := s.apply(ctx, objects); err != nil {
		return nil, refusedRerun(err, before)
	}
	return before, nil
}

// keyOf names an experiment, in its own namespace if it has one.
func (s *session) keyOf(experiment *unstructured.Unstructured) types.NamespacedName {
	key := s.key(experiment.GetName())
	key.Namespace = cmp.Or(experiment.GetNamespace(), key.Namespace)
	return key
}

// waitForEnd shows progress until the experiment ends, a signal says to leave,
// or time is up. An end that was there before, in the experiment before, does not
// count.
func waitForEnd(ctx context.Context, timeout time.Duration, s *session, key types.NamespacedName, before *v1beta1.Experiment, d display) (experimentView, error) {
	first, stopped := stopOnInterrupt(s.client, key, d.say)
	ctx, cancel := onSignals(ctx, func(sig os.Signal) error { return &leftError{sig} }, first)
	defer cancel(nil)
	if timeout > 0 {
		timer := time.AfterFunc(timeout, func() {
			cancel(&exitError{code: exitTimeout, err: fmt.Errorf("experiment %s did not end within %s; it goes on: vernier describe %s", key.Name, timeout, key.Name)})
		})
		defer timer.Stop()
	}
	var last experimentView
	err := follow(ctx, s, key, func(v experimentView, now time.Time) (bool, error) {
		if endedBefore(before, v) {
			return false, nil
		}
		last = v
		return v.finished(), d.show(v, now)
	})
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = cause
	}
	if left := (*leftError)(nil); errors.As(err, &left) {
		return last, interrupted(left.sig, <-stopped, last.Experiment)
	}
	return last, err
}

// leftError is the signal on which run was left.
type leftError struct{ sig os.Signal }

func (e *leftError) Error() string { return "left on " + e.sig.String() }

// onSignals calls first at the first Ctrl-C or SIGTERM, and ends the context at the
// second, or when first says so, with the cause that left gives. The second one does not
// wait for first.
func onSignals(ctx context.Context, left func(os.Signal) error, first func(context.Context, os.Signal) (leave bool)) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { signal.Stop(signals) })
	go func() {
		for count := 1; ; count++ {
			select {
			case <-ctx.Done():
				return
			case sig := <-signals:
				if count > 1 {
					cancel(left(sig))
					return
				}
				go func() {
					if first(ctx, sig) {
						cancel(left(sig))
					}
				}()
			}
		}
	}()
	return ctx, cancel
}

// interrupted is why run was left, where stopped says that the experiment gets no new
// trials. exp is nil where it was not seen yet.
func interrupted(sig os.Signal, stopped bool, exp *v1beta1.Experiment) error {
	what := "the experiment goes on"
	switch {
	case stopped && exp != nil && slices.Contains([]v1beta1.ResumePolicy{v1beta1.LongRunning, v1beta1.FromVolume}, exp.Spec.ResumePolicy):
		what = "no new trials start until the same command runs again, and the running ones finish"
	case stopped:
		what = "no new trials start, and the running ones finish"
	}
	return &exitError{code: signalCode(sig), err: fmt.Errorf("left on %s; %s while the control plane runs", sig, what)}
}

func signalCode(sig os.Signal) int {
	if sig == syscall.SIGTERM {
		return exitTerminated
	}
	return exitInterrupted
}

type ending struct {
	requireGoal bool
	// told is true when the trials' messages were printed as they ended.
	told bool
}

func conclude(v experimentView, e ending, s streams) error {
	printResult(s.out, v)
	if v.State == string(v1beta1.ExperimentFailed) {
		return &exitError{code: exitExperimentFailed, err: fmt.Errorf("experiment %s failed: %s%s", v.Experiment.Name, v.brief(v.Message), firstFailure(v, e.told))}
	}
	// Katib calls such an experiment Succeeded, but there is no result to use.
	if !v.hasResult() {
		return &exitError{code: exitExperimentFailed, err: fmt.Errorf("experiment %s ended without a usable trial%s", v.Experiment.Name, whyNone(v, e.told))}
	}
	if v.State == stateInterrupted {
		next := ""
		if v.Experiment.CanResume() {
			next = "; the same command goes on"
		}
		return &exitError{code: exitInterrupted, err: fmt.Errorf("experiment %s was interrupted: %s%s", v.Experiment.Name, v.Message, next)}
	}
	if e.requireGoal && !v.goalReached() {
		return &exitError{code: exitGoalNotReached, err: fmt.Errorf("experiment %s ended without reaching its goal: %s", v.Experiment.Name, v.Reason)}
	}
	return nil
}
