package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	crilogs "k8s.io/cri-client/pkg/logs"

	"github.com/vernier-ml/vernier/local/shim"
)

// logQuery is what a request for logs asks for.
type logQuery struct {
	crilogs.LogOptions
	Previous bool
}

// parseLogQuery reads the parameters that the API server makes of PodLogOptions.
func parseLogQuery(q url.Values, now time.Time) (logQuery, error) {
	var out logQuery
	for name, into := range map[string]*bool{"follow": &out.Follow, "timestamps": &out.Timestamp, "previous": &out.Previous} {
		if v := q.Get(name); v != "" {
			b, err := strconv.ParseBool(v)
			if err != nil {
				return logQuery{}, fmt.Errorf("%s: %q is not a boolean", name, v)
			}
			*into = b
		}
	}
	for name, into := range map[string]**int64{"tailLines": &out.TailLines, "limitBytes": &out.LimitBytes} {
		if v := q.Get(name); v != "" {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < 0 {
				return logQuery{}, fmt.Errorf("%s: %q is not a number from 0", name, v)
			}
			*into = &n
		}
	}
	if v := q.Get("sinceSeconds"); v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 1 {
			return logQuery{}, fmt.Errorf("sinceSeconds: %q is not a number from 1", v)
		}
		out.Since = now.Add(-time.Duration(n) * time.Second)
	}
	if v := q.Get("sinceTime"); v != "" {
		t, err := time.Parse(time.RFC3339, v)
		if err != nil {
			return logQuery{}, fmt.Errorf("sinceTime: %q is not a time in RFC 3339", v)
		}
		out.Since = t
	}
	return out, nil
}

// shimState asks a pod's shim, or reads what it left behind.
func shimState(ctx context.Context, dir string) (shim.State, error) {
	client, err := shim.Attach(ctx, dir)
	if err == nil {
		// It may end between two calls.
		if state, err := client.State(ctx); err == nil {
			return state, nil
		}
	}
	return shim.ReadState(dir)
}

func (s *kubeletServer) serveLogs(w http.ResponseWriter, r *http.Request) {
	t, ok := s.find(w, r)
	if !ok {
		return
	}
	query, err := parseLogQuery(r.URL.Query(), time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	number, err := s.logRun(r.Context(), t, query.Previous)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path := s.layout.log(t.pod.UID, t.container.Name, number)
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			// It has written nothing, or its program could not be started.
			w.WriteHeader(http.StatusOK)
			return
		}
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	out := &flushWriter{w: w, flusher: http.NewResponseController(w), now: query.Follow}
	running := runProbe{dir: s.layout.shim(t.pod.UID), container: t.container.Name, run: number}
	if err := crilogs.ReadLogs(r.Context(), path, "", &query.LogOptions, running, out, out); err != nil && r.Context().Err() == nil {
		s.log.Error(err, "cannot read a log", "path", path)
	}
}

// logRun is the run whose log is meant: the newest, or the one before it.
func (s *kubeletServer) logRun(ctx context.Context, t target, previous bool) (int, error) {
	state, err := shimState(ctx, s.layout.shim(t.pod.UID))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, shim.ErrNotRunning) {
		return 0, err
	}
	newest, ok := state.Latest(t.container.Name)
	switch {
	case !ok:
		return 0, fmt.Errorf("container %q in pod %q is waiting to start", t.container.Name, t.pod.Name)
	case previous && newest.Run == 0:
		return 0, fmt.Errorf("previous terminated container %q in pod %q not found", t.container.Name, t.pod.Name)
	case previous:
		return newest.Run - 1, nil
	}
	return newest.Run, nil
}

// runProbe tells the log reader whether the run still goes on. It answers for
// the one call that the reader makes.
type runProbe struct {
	runtimeapi.RuntimeService
	dir       string
	container string
	run       int
}

func (p runProbe) ContainerStatus(ctx context.Context, _ string, _ bool) (*criv1.ContainerStatusResponse, error) {
	status := &criv1.ContainerStatus{State: criv1.ContainerState_CONTAINER_EXITED}
	state, err := shimState(ctx, p.dir)
	if r, ok := state.Find(p.container, p.run); err == nil && ok && r.Phase != shim.Exited {
		status.State = criv1.ContainerState_CONTAINER_RUNNING
	}
	return &criv1.ContainerStatusResponse{Status: status}, nil
}

// flushWriter sends each write on at once when somebody follows.
type flushWriter struct {
	w       http.ResponseWriter
	flusher *http.ResponseController
	now     bool
}

func (f *flushWriter) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err == nil && f.now {
		err = f.flusher.Flush()
	}
	return n, err
}
