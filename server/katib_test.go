package server_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	katibv1beta1 "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/server"
)

// katib is a DBManager whose callers all have the address 127.0.0.1.
type katib struct {
	client   katibv1beta1.DBManagerClient
	store    collector.Store
	registry *prometheus.Registry
	woken    []string
	pods     []server.KatibReporter // with the callers' address
	late     int                    // looks until the pods are known
	trials   []collector.TrialID
	broken   error
	asked    netip.Addr
}

var katibNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newKatib(t *testing.T) *katib { return newKatibOver(t, "memory:") }

func newKatibOver(t *testing.T, storeAddress string) *katib {
	t.Helper()
	k := &katib{registry: prometheus.NewRegistry(), trials: []collector.TrialID{trial},
		pods: []server.KatibReporter{{Trial: trial, Metrics: []string{"loss", "acc"}, Pod: "pod", Started: katibNow}}}
	var err error
	if k.store, err = store.Open(t.Context(), storeAddress); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.store.Close() })
	t.Cleanup(func() {
		if err := k.store.Close(); err != nil {
			t.Error(err)
		}
	})
	now := katibNow
	path, handler, err := server.NewKatibHandler(server.KatibConfig{
		Store: k.store, Metrics: k.registry, Now: func() time.Time { now = now.Add(time.Second); return now },
		OnPoints: func(id collector.TrialID) { k.woken = append(k.woken, id.UID) },
		After:    func(time.Duration) <-chan time.Time { return time.After(0) },
		Reporters: func(_ context.Context, a netip.Addr) ([]server.KatibReporter, error) {
			if k.asked = a; k.late > 0 {
				k.late--
				return nil, k.broken
			}
			return k.pods, k.broken
		},
		Trials: func(_ context.Context, name string) (found []collector.TrialID, _ error) {
			for _, id := range k.trials {
				if id.Name == name {
					found = append(found, id)
				}
			}
			return found, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	address := server.Listen(t, path, handler, func(ctx context.Context, l net.Listener, h http.Handler) error {
		return server.Serve(ctx, l, h, nil)
	})
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	k.client = katibv1beta1.NewDBManagerClient(&http.Client{Transport: transport}, "http://"+address, connect.WithGRPC())
	return k
}

func (k *katib) report(t *testing.T, name, at string, pairs ...string) error {
	t.Helper()
	r := &katibv1beta1.ReportObservationLogRequest{TrialName: name, ObservationLog: &katibv1beta1.ObservationLog{}}
	for i := 0; i < len(pairs); i += 2 {
		r.ObservationLog.MetricLogs = append(r.ObservationLog.MetricLogs,
			&katibv1beta1.MetricLog{TimeStamp: at, Metric: &katibv1beta1.Metric{Name: pairs[i], Value: pairs[i+1]}})
	}
	_, err := k.client.ReportObservationLog(t.Context(), r)
	return err
}

func (k *katib) read(t *testing.T, r *katibv1beta1.GetObservationLogRequest) ([]string, error) {
	t.Helper()
	reply, err := k.client.GetObservationLog(t.Context(), r)
	var lines []string
	for _, l := range reply.GetObservationLog().GetMetricLogs() {
		lines = append(lines, l.GetTimeStamp()+" "+l.GetMetric().GetName()+"="+l.GetMetric().GetValue())
	}
	return lines, err
}

func TestKatibTakesReportsOfTheTrialsPodsOnly(t *testing.T) {
	other := collector.TrialID{Namespace: "ns", Name: "random-0002", UID: "uid-2"}
	tests := map[string]struct {
		trial string
		edit  func(*katib)
		want  connect.Code
		says  string
	}{
		"a pod of the trial":                  {trial: trial.Name},
		"a pod that is not known yet":         {trial: trial.Name, edit: func(k *katib) { k.late = 20 }},
		"a pod that speaks for another trial": {trial: other.Name, want: connect.CodePermissionDenied, says: `belongs to trial "random-0001"`},
		"a pod of another trial":              {trial: trial.Name, edit: func(k *katib) { k.pods[0].Trial = other }, want: connect.CodePermissionDenied, says: "may not speak"},
		"an unknown pod":                      {trial: trial.Name, edit: func(k *katib) { k.pods = nil }, want: connect.CodePermissionDenied, says: "no pod of a trial has the address 127.0.0.1"},
		"an address of two pods":              {trial: trial.Name, edit: func(k *katib) { k.pods = append(k.pods, k.pods[0]) }, want: connect.CodePermissionDenied, says: "does not tell which"},
		"no name":                             {want: connect.CodePermissionDenied, says: "may not speak"},
		"pods that cannot be read":            {trial: trial.Name, edit: func(k *katib) { k.broken = errors.New("no API server") }, want: connect.CodeUnavailable, says: "no API server"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k := newKatib(t)
			if tc.edit != nil {
				tc.edit(k)
			}
			err := k.report(t, tc.trial, "2026-01-01T00:00:00Z", "loss", "0.5")
			points, storeErr := collector.ReadSeries(t.Context(), k.store, trial.UID)
			if storeErr != nil {
				t.Fatal(storeErr)
			}
			if tc.want == 0 {
				if err != nil || len(points) != 1 || len(k.woken) != 1 || k.asked.String() != "127.0.0.1" {
					t.Errorf("error %v, series %v, woken %v, asked for %v", err, points, k.woken, k.asked)
				}
				return
			}
			if connect.CodeOf(err) != tc.want || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want %v with %q", err, tc.want, tc.says)
			}
			if len(points) > 0 || len(k.woken) > 0 {
				t.Errorf("points %v, woken %v", points, k.woken)
			}
			if _, err := k.client.DeleteObservationLog(t.Context(), &katibv1beta1.DeleteObservationLogRequest{TrialName: tc.trial}); connect.CodeOf(err) != tc.want {
				t.Errorf("delete: %v, want %v", err, tc.want)
			}
		})
	}
}

func TestKatibKeepsWhatIsReported(t *testing.T) {
	k := newKatib(t)
	for _, err := range []error{
		k.report(t, trial.Name, "2026-01-01T00:00:02Z", "loss", "0.50", "acc", "nan", "unwanted", "1"),
		k.report(t, trial.Name, "2026-01-01T00:00:01Z", "loss", "1e-05", "loss", "1e-05"),
		k.report(t, trial.Name, "no time", "loss", "high"),
		k.report(t, trial.Name, ""),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	all := []string{
		"2026-01-01T00:00:01Z loss=1e-05", "2026-01-01T00:00:01Z loss=1e-05",
		"2026-01-01T00:00:02Z acc=NaN", "2026-01-01T00:00:02Z loss=0.50", "2026-01-02T03:04:08Z loss=high",
	}
	tests := map[string]struct {
		metric, from, to string
		want             []string
	}{
		"all":                  {want: all},
		"one metric":           {metric: "acc", want: all[2:3]},
		"from a time on":       {from: "2026-01-01T00:00:02Z", want: all[2:]},
		"until a time":         {to: "2026-01-01T00:00:01Z", want: all[:2]},
		"a metric it has not":  {metric: "unwanted"},
		"between, by fraction": {from: "2026-01-01T00:00:01.5Z", to: "2026-01-01T00:00:02+00:00", want: all[2:4]},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := k.read(t, &katibv1beta1.GetObservationLogRequest{TrialName: trial.Name, MetricName: tc.metric, StartTime: tc.from, EndTime: tc.to})
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("error %v, points (-want +got):\n%s", err, diff)
			}
		})
	}
	attempts, err := k.store.Attempts(t.Context(), trial.UID)
	if err != nil || len(attempts) != 1 || attempts[0].Attempt.ID != "pod/0" || !attempts[0].Attempt.Started.Equal(katibNow) {
		t.Errorf("attempts %+v, %v", attempts, err)
	}
	if _, err := k.client.DeleteObservationLog(t.Context(), &katibv1beta1.DeleteObservationLogRequest{TrialName: trial.Name}); err != nil {
		t.Error(err)
	}
	if got, err := k.read(t, &katibv1beta1.GetObservationLogRequest{TrialName: trial.Name}); err != nil || got != nil {
		t.Errorf("after the deletion: %v, %v", got, err)
	}
	want := `
# HELP vernier_katib_calls_total Calls of Katib's DBManager, by call (report, get, delete) and result (ok, or the gRPC code).
# TYPE vernier_katib_calls_total counter
vernier_katib_calls_total{call="delete",result="ok"} 1
vernier_katib_calls_total{call="get",result="ok"} 7
vernier_katib_calls_total{call="report",result="ok"} 4
`
	if err := testutil.GatherAndCompare(k.registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// The points join those that the pod's collector reports.
func TestKatibReportsToTheCollectorsAttempt(t *testing.T) {
	k := newKatib(t)
	for _, id := range []string{"pod/0", "pod/1", "other/0"} {
		a := collector.Attempt{ID: id, Started: katibNow.Add(time.Duration(len(id)+int(id[len(id)-1])) * time.Minute)}
		if err := k.store.Append(t.Context(), trial, a, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.report(t, trial.Name, "", "loss", "1"); err != nil {
		t.Fatal(err)
	}
	series, err := collector.ReadSeries(t.Context(), k.store, trial.UID)
	if err != nil || len(series) != 1 || series[0].Attempt.ID != "pod/1" {
		t.Errorf("series %+v, %v; want one of pod/1", series, err)
	}
}

func TestKatibReadersNameATrial(t *testing.T) {
	twin := collector.TrialID{Namespace: "ns-2", Name: trial.Name, UID: "uid-3"}
	tests := map[string]struct {
		edit func(*katib)
		name string
		want connect.Code
	}{
		"from anywhere":                         {edit: func(k *katib) { k.pods = nil }, name: trial.Name},
		"a name that no trial has":              {name: "random-0009", want: connect.CodeNotFound},
		"a name of two, from outside":           {edit: func(k *katib) { k.pods, k.trials = nil, append(k.trials, twin) }, name: trial.Name, want: connect.CodeFailedPrecondition},
		"a name of two, from a pod of one":      {edit: func(k *katib) { k.trials = append(k.trials, twin) }, name: trial.Name},
		"of another namespace only, from a pod": {edit: func(k *katib) { k.trials = []collector.TrialID{twin} }, name: trial.Name, want: connect.CodeNotFound},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k := newKatib(t)
			if tc.edit != nil {
				tc.edit(k)
			}
			if _, err := k.read(t, &katibv1beta1.GetObservationLogRequest{TrialName: tc.name}); tc.want == 0 && err != nil || tc.want != 0 && connect.CodeOf(err) != tc.want {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}

func TestKatibRefusesWhatItCannotTake(t *testing.T) {
	k := newKatib(t)
	if err := k.report(t, trial.Name, "", make([]string, 2*8193)...); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("too many points: %v", err)
	}
	for _, r := range []*katibv1beta1.GetObservationLogRequest{
		{TrialName: trial.Name, StartTime: "yesterday"}, {TrialName: trial.Name, EndTime: "tomorrow"},
	} {
		if _, err := k.read(t, r); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%v: %v", r, err)
		}
	}
	if _, _, err := server.NewKatibHandler(server.KatibConfig{}); err == nil {
		t.Error("a DBManager of nothing")
	}
}
