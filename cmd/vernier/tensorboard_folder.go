package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector/source/events"
)

const (
	// folderSign and the UID of an experiment are the name of the file that says whose
	// runs a folder holds.
	folderSign = ".vernier-tensorboard-"
	// byUs is in the names of the files of a run that are written here, and not by
	// the collector or a program, whose directory the run may be too.
	byUs = ".vernier-run."
)

// markOf is the file of a run that is written first: the parameters of its trial.
func markOf(trial string) string {
	return strings.TrimSuffix(events.HparamsFile, ".vernier") + byUs + trial
}

// claim makes the folder the experiment's. One that holds anything else is refused, for
// runs are removed from it.
func (f *runFolder) claim(e *v1beta1.Experiment) error {
	if err := os.MkdirAll(f.root, 0o755); err != nil {
		return fmt.Errorf("make the folder of the runs: %w", err)
	}
	sign := filepath.Join(f.root, folderSign+string(e.UID))
	if mine, err := f.owned(sign); mine || err != nil {
		return err
	}
	file, err := os.OpenFile(sign, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("mark the folder of the runs: %w", err)
	}
	if err == nil {
		_, err = fmt.Fprintf(file, "The runs of the experiment %s/%s, by vernier tensorboard.\n", e.Namespace, e.Name)
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("mark the folder of the runs: %w", err)
		}
	}
	if _, err := f.owned(sign); err != nil { // another came at the same time
		return errors.Join(err, os.Remove(sign))
	}
	return nil
}

// owned says whether the folder has the sign. An error says that it is another's.
func (f *runFolder) owned(sign string) (bool, error) {
	entries, err := os.ReadDir(f.root)
	if err != nil {
		return false, fmt.Errorf("look into the folder of the runs: %w", err)
	}
	mine := false
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == filepath.Base(sign):
			mine = true
		case strings.HasPrefix(name, folderSign):
			return false, usageErrorf("%s holds the runs of another experiment, or of an earlier one of this name: name another folder by --logdir, or remove this one", f.root)
		}
	}
	if !mine && len(entries) > 0 {
		return false, usageErrorf("%s is not empty, and was not made by vernier tensorboard: name a new or an empty folder by --logdir", f.root)
	}
	return mine, nil
}

// forget removes the runs of trials that the experiment no longer has. What else is in
// their directories stays.
func (f *runFolder) forget(v experimentView) error {
	entries, err := os.ReadDir(f.root)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() || slices.ContainsFunc(v.Trials, func(t trialView) bool { return t.Name == name }) {
			continue
		}
		run := filepath.Join(f.root, name)
		mark := filepath.Join(run, markOf(name))
		if _, err := os.Lstat(mark); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := removeRun(run, mark); err != nil {
			return fmt.Errorf("remove the run of a trial that is gone: %w", err)
		}
	}
	return nil
}

// removeRun removes what was written and linked for a run, its mark last, and the
// directories that are empty then.
func removeRun(run, mark string) error {
	emptied := []string{run}
	err := filepath.WalkDir(run, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		linked := entry.Type()&fs.ModeSymlink != 0 && strings.Contains(entry.Name(), "tfevents")
		ours := linked || entry.Type().IsRegular() && filepath.Dir(path) == run && strings.Contains(entry.Name(), byUs)
		if !ours || path == mark {
			return nil
		}
		emptied = append(emptied, filepath.Dir(path))
		return os.Remove(path)
	})
	if err == nil {
		err = os.Remove(mark)
	}
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(emptied) {
		for len(dir) >= len(run) && os.Remove(dir) == nil {
			dir = filepath.Dir(dir)
		}
	}
	return nil
}
