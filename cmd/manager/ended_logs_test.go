package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/server/api"
)

// What the program has started may go on, and have its pipes.
func TestALogThatIsNotReadToItsEndIsClosedSoon(t *testing.T) {
	log, err := endedLogs([]string{"sh", "-c", "sleep 20 & echo a; wait"})(t.Context(), types.NamespacedName{Namespace: "ml", Name: "t"}, "exp", &corev1.PodLogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	if err := log.Close(); err != nil || time.Since(at) > 10*time.Second {
		t.Errorf("closed after %s, %v", time.Since(at), err)
	}
}

func TestLogsOfEndedTrials(t *testing.T) {
	read := func(script string) (string, error) {
		t.Helper()
		log, err := endedLogs([]string{"sh", "-c", script})(t.Context(), types.NamespacedName{Namespace: "ml", Name: "t"}, "exp", &corev1.PodLogOptions{})
		if err != nil {
			return "", err
		}
		defer log.Close()
		text, err := io.ReadAll(io.LimitReader(log, 6))
		return string(text), err
	}
	tests := map[string]struct {
		script, want, err string
		notFound          bool
	}{
		"all of it":         {script: "printf 'a\\nb'", want: "a\nb"},
		"an empty one":      {script: "true"},
		"none is kept":      {script: "echo 'vernier: no log of t is kept' >&2; exit 4", err: "no log of t is kept", notFound: true},
		"it fails":          {script: "echo broken >&2; exit 1", err: "broken"},
		"it fails later":    {script: "echo a; echo broken >&2; exit 1", want: "a\n", err: "broken"},
		"one without end":   {script: "yes a", want: "a\na\na\n"},
		"one with warnings": {script: "echo careful >&2; echo a", want: "a\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := read(tc.script)
			if got != tc.want || errors.Is(err, api.ErrNoLog) != tc.notFound || (err == nil) != (tc.err == "") {
				t.Errorf("read %q, %v", got, err)
			}
			if err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
