package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/server/api"
)

// exitNotFound is how vernier logs ends when no log is kept.
const exitNotFound = 4

// endedLogs reads logs of trials whose pods are gone by the program vernier, which knows
// where the node agent keeps them; nil without a command.
func endedLogs(command []string) api.EndedLogs {
	if len(command) == 0 {
		return nil
	}
	return func(ctx context.Context, trial types.NamespacedName, experiment string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		args := append(slices.Clone(command[1:]), "--namespace", trial.Namespace, "logs",
			"--container", o.Container, "--tail", strconv.FormatInt(ptr.Deref(o.TailLines, -1), 10), "--previous="+strconv.FormatBool(o.Previous),
			"--", experiment+"/"+trial.Name)
		out, err := exec.CommandContext(ctx, command[0], args...).Output()
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			said := strings.TrimPrefix(strings.TrimSpace(string(failed.Stderr)), "vernier: ")
			if failed.ExitCode() == exitNotFound {
				return nil, fmt.Errorf("%w: %s", api.ErrNoLog, said)
			}
			err = fmt.Errorf("%w: %s", err, said)
		}
		if err != nil {
			return nil, fmt.Errorf("read the kept log of trial %s: %w", trial, err)
		}
		return io.NopCloser(bytes.NewReader(out)), nil
	}
}
