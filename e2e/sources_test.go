//go:build e2e

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sourceProgram is a Python program whose metrics are read by one kind of
// collector. It has its parameter in x and reports 7 first, x last.
type sourceProgram struct {
	needs     string // a package from PyPI, or ""
	collector string
	container string // more fields of the container, or ""
	parallel  int
	code      string
}

// scraped is the beginning of a program that counts its scrapes. scraped() returns
// when a page that was made since has been read: the next one was asked for.
const scraped = `
import time
scrapes = 0
def scraped():
    n, end = scrapes, time.monotonic() + 120
    while scrapes < n + 3:
        if time.monotonic() > end:
            raise SystemExit("read %d times in 2 minutes" % (scrapes - n))
        time.sleep(0.01)
`

func sourcePrograms() map[string]sourceProgram {
	return map[string]sourceProgram{
		// Two at a time on one machine, each with a port of its own.
		"prometheus": {needs: "prometheus_client", parallel: 2, collector: `{collector: {kind: PrometheusMetric}, source: {httpGet: {port: auto}}}`, code: scraped + `
import os
from prometheus_client import REGISTRY, Gauge, start_http_server
class Scrapes:
    def describe(self): return []
    def collect(self):
        global scrapes
        scrapes += 1
        return []
REGISTRY.register(Scrapes())
loss, epoch = Gauge("loss", "the loss", ["split"]), Gauge("epoch", "the epoch")
start_http_server(int(os.environ["VERNIER_METRICS_PORT"]), addr="127.0.0.1")
for i, v in enumerate([7, 5, x]):
    epoch.set(i)
    loss.labels("train").set(0.01)
    loss.labels("test").set(v)
    scraped()
`},
		// As in Katib's own example; one at a time, since they share a port.
		"prometheus-port": {parallel: 1, collector: `{collector: {kind: PrometheusMetric}, source: {httpGet: {port: 12917, path: /m, host: localhost, scheme: HTTP, httpHeaders: [{name: X-Token, value: abc}]}}}`, code: scraped + `
import http.server, threading
value = 7
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global scrapes
        assert self.path == "/m" and self.headers["X-Token"] == "abc"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(('loss{split="test"} %r\n' % value).encode())
        scrapes += 1
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer.allow_reuse_address = True
server = http.server.ThreadingHTTPServer(("127.0.0.1", 12917), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
scraped()
value = x
scraped()
`},
		"wandb": {needs: "wandb", parallel: 2, collector: `{collector: {kind: File}, source: {fileSystemPath: {format: WANDB}}}`, code: `
import wandb
with wandb.init(project="e2e") as run:
    for v in (7, float("nan"), x):
        run.log({'loss{split="test"}': v, "accuracy": 0.5, "eval": {"f1": 0.25}})
`},
		"csv-directory": {parallel: 2, collector: `{collector: {kind: File}, source: {fileSystemPath: {kind: Directory, format: CSV, path: /logs/lightning}}}`, code: `
import csv, os
os.makedirs("/logs/lightning/version_0")
with open("/logs/lightning/version_0/metrics.csv", "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(["step", 'loss{split="test"}', "acc"])
    w.writerow([1, 7, ""])
    w.writerow([2, x, 0.5])
`},
		"csv": {parallel: 2, collector: `{collector: {kind: File}, source: {fileSystemPath: {format: CSV, path: /logs/metrics.csv}}}`, code: `
import csv
with open("/logs/metrics.csv", "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(["step", 'loss{split="test"}'])
    w.writerow([1, 7])
    w.writerow([2, x])
`},
		"json-stdout": {parallel: 2, collector: `{source: {fileSystemPath: {format: JSON}}}`, code: `
import json
for step, v in enumerate([7, x]):
    print(json.dumps({'loss{split="test"}': v, "step": step}))
`},
	}
}

func sourceExperiment(name string, parallel int, collector, command string) jobExperiment {
	return jobExperiment{
		name:      "source-" + name,
		objective: `{type: minimize, objectiveMetricName: 'loss{split="test"}'}`,
		parallel:  parallel,
		max:       3,
		collector: collector,
		command:   command,
	}
}

// TestSources runs real programs under "vernier run", each read by another kind
// of collector.
func TestSources(t *testing.T) {
	i := up(t)
	for name, program := range sourcePrograms() {
		t.Run(name, func(t *testing.T) { program.check(t, i, name) })
	}
}

// check runs the program as three trials, each of which must observe its own x
// as the latest and the least loss, and 7 as the greatest.
func (p sourceProgram) check(t *testing.T, i *instance, name string) {
	t.Helper()
	dir := t.TempDir()
	script, manifest := filepath.Join(dir, "train.py"), filepath.Join(dir, "experiment.yaml")
	write(t, script, "import sys\nx = float(sys.argv[1])\n"+p.code)
	experiment := sourceExperiment(name, p.parallel, p.collector, pythonCommand(pythonWith(t, p.needs), script))
	experiment.container = p.container
	write(t, manifest, experiment.yaml())
	if out, err := i.vernier("run", "-f", manifest, "--progress", "none", "--timeout", "5m"); err != nil {
		described, _ := i.vernier("describe", "source-"+name+"/latest")
		t.Fatalf("vernier run: %v\n%s\n%s", err, out, described)
	}
	for _, trial := range i.trials(t, "source-"+name) {
		want := trial.Spec.ParameterAssignments[0].Value
		if trial.Status.Observation == nil || len(trial.Status.Observation.Metrics) == 0 {
			t.Errorf("trial %s has no observation", trial.Name)
			continue
		}
		m := trial.Status.Observation.Metrics[0]
		if m.Latest != want || m.Min != want || strings.TrimSuffix(m.Max, ".0") != "7" {
			t.Errorf("trial %s observed %+v, want the latest and least loss %s and the greatest 7", trial.Name, m, want)
		}
	}
}

// TestWhatTemplatesTakeFromSecretsAndConfigMaps runs a program whose endpoint
// wants a credential of a Secret, and one that pushes beside a tracking server
// that a ConfigMap names.
func TestWhatTemplatesTakeFromSecretsAndConfigMaps(t *testing.T) {
	i := up(t)
	meta := metav1.ObjectMeta{Namespace: "default", Name: "theirs"}
	for _, o := range []client.Object{
		&corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"token": "s3cret$(X)\n"}},
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"MLFLOW_TRACKING_URI": "http://mlflow.example"}},
	} {
		if err := i.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	programs := map[string]sourceProgram{
		"secret": {
			parallel:  2,
			container: `env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: theirs, key: token}}}]`,
			collector: `{collector: {kind: PrometheusMetric}, source: {httpGet: {port: auto, httpHeaders: [{name: Authorization, value: Bearer $(TOKEN)}]}}}`,
			code: scraped + `
import http.server, os, threading
value = 7
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global scrapes
        assert self.headers["Authorization"] == "Bearer s3cret$(X)", self.headers
        self.send_response(200)
        self.end_headers()
        self.wfile.write(('loss{split="test"} %r\n' % value).encode())
        scrapes += 1
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["VERNIER_METRICS_PORT"])), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
scraped()
value = x
scraped()
`,
		},
		"env-from": {
			parallel:  2,
			container: `envFrom: [{configMapRef: {name: theirs}}]`,
			collector: `{collector: {kind: Push}}`,
			code: `
import json, os, urllib.request
assert os.environ["MLFLOW_TRACKING_URI"] == "http://mlflow.example"
assert os.environ["KUBEFLOW_TRAINER_SERVER_URL"].startswith("http://127.")
for v in (7, x):
    urllib.request.urlopen(os.environ["VERNIER_PUSH_URL"], json.dumps({'loss{split="test"}': v}).encode())
`,
		},
	}
	for name, program := range programs {
		t.Run(name, func(t *testing.T) { program.check(t, i, name) })
	}
}

// TestTrialsThatShareAPortAreNotMixedUp runs three programs at once with one fixed
// port: those that cannot listen must not get the other's values.
func TestTrialsThatShareAPortAreNotMixedUp(t *testing.T) {
	i := up(t)
	dir := t.TempDir()
	script, manifest := filepath.Join(dir, "train.py"), filepath.Join(dir, "experiment.yaml")
	write(t, script, `
import http.server, os, sys, threading, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(('loss{split="test"} %s\n' % sys.argv[1]).encode())
    def log_message(self, *args): pass
try:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 12918), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
except OSError as e:
    print(e) # and goes on unmeasured
here = os.path.dirname(os.path.abspath(__file__))
open(os.path.join(here, "up-%d" % os.getpid()), "w").close()
end = time.monotonic() + 120
while sum(name.startswith("up-") for name in os.listdir(here)) < 3: # all at once, however late one is
    if time.monotonic() > end:
        raise SystemExit("the other two did not start in 2 minutes")
    time.sleep(0.01)
time.sleep(3)
`)
	experiment := sourceExperiment("shared", 3, `{collector: {kind: PrometheusMetric}, source: {httpGet: {port: 12918}}}`, pythonCommand(pythonWith(t, ""), script))
	experiment.maxFailed = 3
	write(t, manifest, experiment.yaml())
	if out, err := i.vernier("run", "-f", manifest, "--progress", "none", "--timeout", "5m"); err != nil {
		t.Logf("vernier run: %v\n%s", err, out) // one trial at least is not measured
	}
	told := false
	for _, trial := range i.trials(t, "source-shared") {
		x := trial.Spec.ParameterAssignments[0].Value
		if o := trial.Status.Observation; o != nil && len(o.Metrics) > 0 && o.Metrics[0].Latest != "unavailable" && o.Metrics[0].Latest != x {
			t.Errorf("trial %s with x=%s observed %+v of another trial", trial.Name, x, o.Metrics[0])
		}
		for _, c := range trial.Status.Conditions {
			told = told || strings.Contains(c.Message, "port: auto")
		}
	}
	if !told {
		t.Error("no trial's condition says what to do")
	}
}
