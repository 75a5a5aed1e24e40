package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/local"
	"github.com/vernier-ml/vernier/local/agent"
	"github.com/vernier-ml/vernier/local/shim"
	"github.com/vernier-ml/vernier/trainer"
	corev1 "k8s.io/api/core/v1"
)

// archived writes the log of a trial whose pods are gone, as the embedded
// instance kept it: that of its newest pod's last run.
func (r logReader) archived(trial *v1beta1.Trial, out io.Writer) error {
	if r.home == "" {
		return notFoundErrorf("the pods of trial %s are gone, and their logs with them; set trialTemplate.retain to keep them", trial.Name)
	}
	logs, err := agent.ReadArchivedLogs(local.Home(r.home).AgentRoot(), trial.Namespace, trial.Name, r.options.container)
	if err != nil {
		return err
	}
	var others []string
	logs = slices.DeleteFunc(logs, func(l agent.ArchivedLog) bool {
		wanted := r.wants(trial, l.Pod, l.Labels)
		if name := strings.TrimPrefix(l.Pod, trial.Name+"-"); !wanted && !slices.Contains(others, name) {
			others = append(others, name)
		}
		return !wanted
	})
	newest := len(logs) - 1
	if err := r.noSuchPod(trial, others); err != nil && newest < 0 {
		return err
	}
	if newest < 0 {
		return notFoundErrorf("no log of container %s of trial %s is kept: the program's container is %s, the collector's %s or %s",
			r.options.container, trial.Name, trial.Spec.PrimaryContainerName, trainer.SidecarLogger, trainer.Sidecar)
	}
	if r.options.previous {
		newest--
	}
	if newest < 0 {
		return notFoundErrorf("container %s of trial %s ran once: leave --previous out", r.options.container, trial.Name)
	}
	if err := r.noteCut(logs[newest]); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := logs[newest].Copy(&text); err != nil {
		return err
	}
	_, err = out.Write(lastLines(text.Bytes(), r.options.tail))
	return err
}

// noteOlder says when the beginning of a log is not shown: the API server shows
// the newest part of one that was rotated.
func (r logReader) noteOlder(pod *corev1.Pod) error {
	if r.home == "" || r.options.tail >= 0 {
		return nil
	}
	older, err := agent.OlderLog(local.Home(r.home).AgentRoot(), pod.UID, r.options.container, r.options.previous)
	if err != nil || older == "" {
		return err
	}
	_, err = fmt.Fprintf(r.notes, "vernier: the beginning of this log is not shown; the part before it is %s\n", older)
	return err
}

// noteCut says when the beginning of an archived log may be gone.
func (r logReader) noteCut(log agent.ArchivedLog) error {
	if r.options.tail >= 0 {
		return nil
	}
	cut, err := log.Cut()
	if err != nil || !cut {
		return err
	}
	_, err = fmt.Fprintf(r.notes, "vernier: the beginning of this log may be gone: the newest %d MiB or so are kept\n", shim.LogMaxFiles*shim.LogMaxBytes>>20)
	return err
}

// lastLines are the last n lines of text, or all when n is negative.
func lastLines(text []byte, n int64) []byte {
	if n < 0 {
		return text
	}
	start := len(text)
	if start > 0 && text[start-1] == '\n' {
		start--
	}
	for ; n > 0; n-- {
		i := bytes.LastIndexByte(text[:start], '\n')
		if i < 0 {
			return text
		}
		start = i
	}
	if start == len(text) {
		return nil
	}
	return text[start+1:]
}
