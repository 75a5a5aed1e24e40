package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source/events"
	"github.com/vernier-ml/vernier/collector/tensorboard"
	"github.com/vernier-ml/vernier/local/statefile"
)

// runFolder is the log directory of an experiment: one run for each trial. Event files
// only grow, so that a TensorBoard that reads them goes on.
type runFolder struct {
	session *session
	root    string
	done    map[string]bool   // trials that have ended and are written, by UID
	folders map[string]string // of the trials' own event files, or empty, by UID
}

func newRunFolder(s *session, root string) *runFolder {
	return &runFolder{session: s, root: root, done: map[string]bool{}, folders: map[string]string{}}
}

// write brings the folder up to date.
func (f *runFolder) write(ctx context.Context, v experimentView, points collector.Store) error {
	if err := f.claim(v.Experiment); err != nil {
		return err
	}
	if err := f.forget(v); err != nil {
		return err
	}
	folders, err := f.eventFolders(ctx, v)
	if err != nil {
		return err
	}
	for _, t := range v.Trials {
		if t.Object == nil || f.done[string(t.Object.UID)] {
			continue
		}
		if err := f.writeTrial(ctx, t, folders[t.Name], points); err != nil {
			return fmt.Errorf("write the run of trial %s: %w", t.Name, err)
		}
		f.done[string(t.Object.UID)] = t.finished()
	}
	return nil
}

func (f *runFolder) writeTrial(ctx context.Context, t trialView, folder string, points collector.Store) error {
	run := filepath.Join(f.root, t.Name)
	if err := os.MkdirAll(run, 0o755); err != nil {
		return err
	}
	session := tensorboard.Session{Group: t.Name, Started: t.Object.CreationTimestamp.Time}
	for _, p := range t.Params {
		session.Parameters = append(session.Parameters, tensorboard.Parameter{Name: p.Name, Value: p.Value})
	}
	content := tensorboard.Start(session)
	if t.finished() {
		content = append(content, tensorboard.End(statusOf(t), t.Ended)...)
	}
	if err := grow(filepath.Join(run, markOf(t.Name)), content); err != nil {
		return err
	}
	if folder != "" {
		return linkEvents(folder, run)
	}
	return writePoints(ctx, string(t.Object.UID), run, points)
}

func statusOf(t trialView) tensorboard.Status {
	switch v1beta1.TrialConditionType(t.State) {
	case v1beta1.TrialSucceeded, v1beta1.TrialEarlyStopped:
		return tensorboard.StatusSuccess
	case v1beta1.TrialFailed, v1beta1.TrialMetricsUnavailable:
		return tensorboard.StatusFailure
	}
	return tensorboard.StatusUnknown
}

// writePoints writes the curves of a trial, in one event file for each attempt.
func writePoints(ctx context.Context, uid, run string, points collector.Store) error {
	var (
		attempt collector.Attempt
		content []byte
		seen    map[string]int64
	)
	flush := func() error {
		if attempt.ID == "" {
			return nil
		}
		name := fmt.Sprintf("events.out.tfevents.%010d%s%s", attempt.Started.Unix(), byUs, strings.ReplaceAll(attempt.ID, "/", "."))
		return grow(filepath.Join(run, name), content)
	}
	err := points.Scan(ctx, uid, nil, func(a collector.Attempt, p collector.Point) error {
		if a.ID != attempt.ID {
			if err := flush(); err != nil {
				return err
			}
			attempt, content, seen = a, tensorboard.Version(a.Started), map[string]int64{}
		}
		if math.IsNaN(p.Value) && !isNumber(p.Text) {
			return nil
		}
		step := p.Step
		if step == collector.NoStep {
			step = seen[p.Metric]
			seen[p.Metric]++
		}
		content = append(content, tensorboard.Scalar(p.Time, step, p.Metric, p.Value)...)
		return nil
	})
	return errors.Join(err, flush())
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(cmp.Or(text, "NaN"), 64)
	return err == nil
}

// grow makes the file's content what is given. It appends if that is enough: readers
// of the file go on where they are.
func grow(path string, content []byte) error {
	old, err := os.ReadFile(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil || !bytes.HasPrefix(content, old):
		return statefile.Replace(path, content, 0o644)
	case len(old) == len(content):
		return nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(content[len(old):])
	return errors.Join(err, file.Close())
}

// linkEvents links the event files below a folder into a run, each by itself: not all
// readers follow links to folders.
func linkEvents(folder, run string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !strings.Contains(entry.Name(), "tfevents") || strings.HasPrefix(entry.Name(), events.HparamsFile) {
			return err
		}
		rest, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		link := filepath.Join(run, rest)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(path, link); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	})
}
