package main

import (
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// writes counts the requests with which a manager changed objects, by what they changed.
// Those that a conflict refused are not among them.
type writes struct {
	next http.RoundTripper

	mu    sync.Mutex
	count map[string]int
}

func (w *writes) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := w.next.RoundTrip(r)
	if err == nil && r.Method != http.MethodGet && answer.StatusCode < 300 {
		w.mu.Lock()
		w.count[r.Method+" "+resourceOf(r.URL.Path)]++
		w.mu.Unlock()
	}
	return answer, err
}

// resourceOf is that of a path in a namespace, such as trials/status.
func resourceOf(path string) string {
	_, path, _ = strings.Cut(path, "/namespaces/")
	parts := strings.Split(path, "/") // namespace, resource, name, subresource
	if len(parts) < 2 {
		return path
	}
	if len(parts) > 3 {
		return parts[1] + "/" + parts[3]
	}
	return parts[1]
}

// A trial costs the API server few writes: their number is what limits a cluster with many
// short trials. The limits have room for what an experiment costs without its trials, but
// none for a further write a trial. Most states of an experiment are written for several
// trials at once, on a machine that is busy.
func TestWritesOfATrial(t *testing.T) {
	const trials = 12
	limits := map[string]int{
		"POST trials": trials, "PUT trials/status": 2 * trials, // it runs; it has ended
		"POST jobs": trials, "DELETE jobs": trials,
		"POST events":            4*trials + 8,
		"PUT experiments/status": 3 * trials,
		"POST suggestions":       1, "PUT suggestions": trials, "PUT suggestions/status": trials,
	}
	w := newWorld(t, byNumber(3))
	counted := &writes{count: map[string]int{}}
	w.wrap = func(next http.RoundTripper) http.RoundTripper {
		counted.next = next
		return counted
	}
	w.start()
	e := w.experiment("exp", budget(trials))
	w.create(e)
	w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
	w.noJobs()
	counted.mu.Lock()
	got := maps.Clone(counted.count)
	counted.mu.Unlock()
	t.Log(got)
	for what, n := range got {
		if n > limits[what] {
			t.Errorf("%s: %d for %d trials, want at most %d", what, n, trials, limits[what])
		}
	}
	for _, what := range []string{"POST trials", "POST jobs", "DELETE jobs"} {
		if got[what] != trials {
			t.Errorf("%s: %d, want %d: not all is counted", what, got[what], trials)
		}
	}
}
