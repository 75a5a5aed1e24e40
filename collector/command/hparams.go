package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector/source/events"
	"github.com/vernier-ml/vernier/collector/tensorboard"
)

// hparams writes the parameters of the trial beside its event files, for
// TensorBoard's HPARAMS tab.
type hparams struct {
	path    string
	session tensorboard.Session
	began   bool // the file is there
}

// given are the parameters of the trial by name.
func (c runConfig) given() map[string]string {
	given := make(map[string]string, len(c.parameters))
	for _, p := range c.parameters {
		name, value, _ := strings.Cut(p, "=")
		given[name] = value
	}
	return given
}

// newHparams returns nil when there is nothing to write: the kind has no event
// files, or no parameters are known.
func newHparams(cfg runConfig, now time.Time) *hparams {
	if cfg.kind != "TensorFlowEvent" || len(cfg.parameters) == 0 {
		return nil
	}
	h := &hparams{path: filepath.Join(cfg.path, events.HparamsFile+"."+cfg.trial)}
	h.session = tensorboard.Session{Group: cfg.trial, Started: now}
	for name, value := range cfg.given() {
		h.session.Parameters = append(h.session.Parameters, tensorboard.Parameter{Name: name, Value: value})
	}
	return h
}

// mind logs what does not matter for the measurements.
func (r *runner) mind(err error) {
	if err != nil {
		r.log.Info("hparams", "error", err)
	}
}

// start writes that the trial began. The directory is the program's: while it is
// not there, it is not made.
func (h *hparams) start() error {
	if h == nil || h.began {
		return nil
	}
	f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		h.began = true // by an earlier start of the collector
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("the parameters are not shown in TensorBoard: %w", err)
	}
	_, err = f.Write(tensorboard.Start(h.session))
	h.began = err == nil
	return errors.Join(err, f.Close())
}

// end writes that the trial has ended. How is not known here: the program is not
// the collector's.
func (h *hparams) end(now time.Time) error {
	if h == nil {
		return nil
	}
	if err := h.start(); err != nil || !h.began {
		return err
	}
	// The directory is the program's, which may have put anything there: a link that
	// leads elsewhere, or a pipe without a reader.
	f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("the end of the trial is not shown in TensorBoard: %w", err)
	}
	_, err = f.Write(tensorboard.End(tensorboard.StatusUnknown, now))
	return errors.Join(err, f.Close())
}
