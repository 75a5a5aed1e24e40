//go:build e2e

package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// probeScript writes all that it can see of what surrounds it to the file $1, and then
// runs what comes after, which reports a metric.
const probeScript = `
exec 3>"$1"
shift
{
set -- "$@"
stat=$(sed 's/.*) //' /proc/$$/stat)
echo "process group: $([ "$(echo $stat | cut -d' ' -f3)" = $$ ] && echo its own || echo "of another")"
echo "session: $([ "$(echo $stat | cut -d' ' -f4)" = $$ ] && echo its own || echo "of another")"
echo "terminal and niceness: $(echo $stat | cut -d' ' -f5,17)"
for fd in 0 1 2; do echo "descriptor $fd: $(stat -L -c %F /proc/$$/fd/$fd)$([ -t $fd ] && echo ', a terminal')"; done
open= # in $(ls) the shell may have both ends of its own pipe
for fd in /proc/$$/fd/*; do open="$open ${fd##*/}"; done
echo "open files:$open"
echo "umask: $(umask), user: $(id -u):$(id -g), directory: $(pwd), beside it: $(ls | tr '\n' ' ')"
grep -E '^(SigIgn|SigBlk|CapEff|NoNewPrivs|Seccomp)' /proc/self/status
cat /proc/$$/limits /proc/$$/oom_score_adj
echo "a pipeline whose reader goes: $(yes 2>/dev/null | head -n 1)"
sh -c 'exit 7'; echo "exit code of a child: $?"
sh -c 'kill -KILL $$'; echo "exit code of a child that is killed: $?"
trap 'echo "got SIGTERM"' TERM; kill -TERM $$; trap - TERM
sleep 1000 & kill -TERM $!; wait $!; echo "exit code of a background process: $?"
env | sort
} >&3 2>&1
exec 3>&-
exec "$@"
`

// probed is how a trial of one kind of collector reports, and what its program may find
// in its environment besides.
type probed struct {
	collector string
	report    []string // a command; x is its last argument
	adds      []string // beginnings of the names of variables
}

func probeds(events string) map[string]probed {
	python := func(code string) []string { return []string{"python3", "-c", "import sys\nx = sys.argv[1]\n" + code} }
	return map[string]probed{
		"stdout": {`{collector: {kind: StdOut}}`, []string{"sh", "-c", `echo "loss=$0"`}, nil},
		"file": {`{collector: {kind: File}, source: {fileSystemPath: {path: /var/log/katib/metrics.log, kind: File, format: TEXT}}}`,
			[]string{"sh", "-c", `echo "loss=$0" > /var/log/katib/metrics.log`}, nil},
		"events": {`{collector: {kind: TensorFlowEvent}, source: {fileSystemPath: {path: /var/log/katib/tfevent/, kind: Directory}}}`,
			[]string{"sh", "-c", "cp " + events + " /var/log/katib/tfevent/"}, nil},
		"prometheus": {`{collector: {kind: PrometheusMetric}, source: {httpGet: {port: 12920, path: /metrics}}}`, python(`
import http.server, threading, time
seen = 0
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global seen
        self.send_response(200)
        self.end_headers()
        self.wfile.write(("loss %s\n" % x).encode())
        seen += 1
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 12920), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
end = time.monotonic() + 120
while seen < 3 and time.monotonic() < end:
    time.sleep(0.01)
`), []string{"VERNIER_METRICS_PORT="}},
		"push": {`{collector: {kind: Push}}`, python(`
import json, os, urllib.request
urllib.request.urlopen(os.environ["VERNIER_PUSH_URL"], json.dumps({"loss": float(x)}).encode())
`), []string{"VERNIER_PUSH_", "MLFLOW_", "KUBEFLOW_TRAINER_", "KATIB_"}},
	}
}

// TestWhatSurroundsAProgram runs a program in a plain pod, and as a trial under each
// kind of collector, and compares what it can see.
func TestWhatSurroundsAProgram(t *testing.T) {
	i := up(t)
	dir, work := t.TempDir(), t.TempDir()
	script := filepath.Join(dir, "probe.sh")
	write(t, script, probeScript)
	write(t, filepath.Join(work, "data.csv"), "1,2\n")
	file := filepath.Join(dir, "events.out.tfevents.1700000000.host")
	write(t, file, eventRecord(0.25))
	plain := i.probePlainly(t, script, filepath.Join(dir, "plain"), work)
	for kind, p := range probeds(file) {
		t.Run(kind, func(t *testing.T) {
			out := filepath.Join(dir, kind)
			argv := append([]string{"sh", script, out}, p.report...)
			experiment := jobExperiment{name: "probe-" + kind, parallel: 1, max: 1, collector: p.collector, command: "[x]"}.object(t)
			setContainer(t, experiment, append(argv, "${trialParameters.x}"), work)
			if err := i.client.Create(t.Context(), experiment); err != nil {
				t.Fatal(err)
			}
			i.awaitEnd(t, "probe-"+kind)
			got, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			adds := append([]string{"KATIB_TRIAL_NAME=", "VERNIER_TRIAL_SEED=", "HOSTNAME=", "VERNIER_POD_UID="}, p.adds...)
			if diff := cmp.Diff(without(plain, "HOSTNAME=", "VERNIER_POD_UID="), without(string(got), adds...)); diff != "" {
				t.Errorf("what the program sees (-plainly +here):\n%s", diff)
			}
			for _, trial := range i.trials(t, "probe-"+kind) {
				if trial.Status.Observation == nil || len(trial.Status.Observation.Metrics) == 0 {
					t.Errorf("%s has no observation", trial.Name)
				}
			}
		})
	}
}

// eventRecord is a record of an event file of TensorBoard with a scalar "loss" at step 1.
func eventRecord(loss float32) string {
	value := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "loss")
	value = protowire.AppendFixed32(protowire.AppendTag(value, 2, protowire.Fixed32Type), math.Float32bits(loss))
	summary := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), value)
	event := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), math.Float64bits(1.7e9))
	event = protowire.AppendVarint(protowire.AppendTag(event, 2, protowire.VarintType), 1)
	event = protowire.AppendBytes(protowire.AppendTag(event, 5, protowire.BytesType), summary)
	masked := func(data []byte) uint32 {
		sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
		return (sum>>15 | sum<<17) + 0xa282ead8
	}
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(event)))
	record := binary.LittleEndian.AppendUint32(length, masked(length))
	record = append(record, event...)
	return string(binary.LittleEndian.AppendUint32(record, masked(event)))
}

// without leaves out the lines that begin with one of the texts.
func without(text string, beginnings ...string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(line, b) })
	})
}

// probePlainly runs the probe in a pod that is no trial's.
func (i *instance) probePlainly(t *testing.T, script, out, work string) string {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "plain"},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
			Name: "training", Image: "host", Command: []string{"sh", script, out, "true"}, WorkingDir: work,
		}}},
	}
	if err := i.client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		if err := i.client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("the plain pod is %s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
		}
		return nil
	})
	said, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(said), "\n"); n < 30 {
		t.Fatalf("the probe says too little:\n%s", said)
	}
	return string(said)
}
