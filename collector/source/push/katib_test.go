package push

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
)

// katibClient speaks gRPC without TLS, as Katib's SDK does.
func katibClient(url string) katibv1beta1.DBManagerClient {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	return katibv1beta1.NewDBManagerClient(&http.Client{Transport: transport}, url, connect.WithGRPC())
}

func katibLog(at string, pairs ...string) *katibv1beta1.ObservationLog {
	log := &katibv1beta1.ObservationLog{}
	for i := 0; i < len(pairs); i += 2 {
		log.MetricLogs = append(log.MetricLogs, &katibv1beta1.MetricLog{
			TimeStamp: at, Metric: &katibv1beta1.Metric{Name: pairs[i], Value: pairs[i+1]},
		})
	}
	return log
}

func TestReportMetrics(t *testing.T) {
	const now = "2026-01-02T03:04:05Z"
	many := make([]string, 0, 2*maxReportPoints+2)
	for i := range maxReportPoints + 1 {
		many = append(many, "loss", strconv.Itoa(i))
	}
	tests := map[string]struct {
		trial    string
		log      *katibv1beta1.ObservationLog
		wantCode connect.Code
		want     []string
	}{
		"values as Python writes them": {
			trial: pushTrial, log: katibLog(now, "loss", "0.10", "acc", "1e-05", "loss", "inf", "acc", "nan", "other", "1"),
			want: []string{"loss=0.1 at -1 written 0.10", "acc=1e-05 at -1", "loss=+Inf at -1", "acc=NaN at -1"},
		},
		"nothing":                        {trial: pushTrial},
		"a time that cannot be read":     {trial: pushTrial, log: katibLog("yesterday", "loss", "1"), want: []string{"loss=1 at -1"}},
		"another trial":                  {trial: "random-0002", log: katibLog(now, "loss", "1"), wantCode: connect.CodePermissionDenied},
		"no trial":                       {log: katibLog(now, "loss", "1"), wantCode: connect.CodePermissionDenied},
		"more points than a report has":  {trial: pushTrial, log: katibLog(now, many...), wantCode: connect.CodeInvalidArgument},
		"a name that is empty":           {trial: pushTrial, log: katibLog(now, "", "1")},
		"a value that is not valid text": {trial: pushTrial, log: katibLog(now, "loss", "?"), want: []string{"loss=NaN at -1 written ?"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := startPush(t, "", "loss", "acc")
			_, err := katibClient(p.katib).ReportObservationLog(t.Context(),
				&katibv1beta1.ReportObservationLogRequest{TrialName: tc.trial, ObservationLog: tc.log})
			if tc.wantCode == 0 && err != nil || tc.wantCode != 0 && connect.CodeOf(err) != tc.wantCode {
				t.Errorf("error %v, want code %v", err, tc.wantCode)
			}
			if diff := cmp.Diff(tc.want, p.end()); diff != "" {
				t.Errorf("points (-want +got):\n%s", diff)
			}
		})
	}
}

// The SDK's get_trial_metrics asks the same address.
func TestWhatWasReportedIsShown(t *testing.T) {
	p := startPush(t, "", "loss", "acc")
	client := katibClient(p.katib)
	for hour, loss := range []string{"0.30", "nan", "0.1"} {
		at := fmt.Sprintf("2026-01-02T0%d:00:00Z", hour)
		if _, err := client.ReportObservationLog(t.Context(), &katibv1beta1.ReportObservationLogRequest{
			TrialName: pushTrial, ObservationLog: katibLog(at, "loss", loss, "acc", "1")}); err != nil {
			t.Fatal(err)
		}
	}
	p.report(`{"loss": 7}`) // by another way
	tests := map[string]struct {
		ask  *katibv1beta1.GetObservationLogRequest
		code connect.Code
		want []string
	}{
		"a metric": {ask: &katibv1beta1.GetObservationLogRequest{TrialName: pushTrial, MetricName: "loss"}, want: []string{"loss 0.30", "loss NaN", "loss 0.1", "loss 7"}},
		"a stretch of time": {ask: &katibv1beta1.GetObservationLogRequest{TrialName: pushTrial, StartTime: "2026-01-02T01:00:00Z", EndTime: "2026-01-02T01:00:00Z"},
			want: []string{"loss NaN", "acc 1"}},
		"a metric that is not there": {ask: &katibv1beta1.GetObservationLogRequest{TrialName: pushTrial, MetricName: "f1"}},
		"another trial":              {ask: &katibv1beta1.GetObservationLogRequest{TrialName: "random-0002"}, code: connect.CodePermissionDenied},
		"a time that is none":        {ask: &katibv1beta1.GetObservationLogRequest{TrialName: pushTrial, StartTime: "now"}, code: connect.CodeInvalidArgument},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reply, err := client.GetObservationLog(t.Context(), tc.ask)
			if tc.code == 0 && err != nil || tc.code != 0 && connect.CodeOf(err) != tc.code {
				t.Fatalf("error %v, want code %v", err, tc.code)
			}
			var got []string
			for _, l := range reply.GetObservationLog().GetMetricLogs() {
				got = append(got, l.GetMetric().GetName()+" "+l.GetMetric().GetValue())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("logs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReportMetricsRefusesWhatIsNotItsMatter(t *testing.T) {
	p := startPush(t, "")
	client := katibClient(p.katib)
	if _, err := client.DeleteObservationLog(t.Context(), &katibv1beta1.DeleteObservationLogRequest{TrialName: pushTrial}); connect.CodeOf(err) != connect.CodeUnimplemented {
		t.Errorf("delete: %v", err)
	}
	p.end()
	_, err := client.ReportObservationLog(t.Context(), &katibv1beta1.ReportObservationLogRequest{TrialName: pushTrial, ObservationLog: katibLog("", "loss", "1")})
	if connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("after the end: %v", err)
	}
}

// begun is a body that has begun and does not come to its end until told.
type begun struct {
	count *atomic.Int64
	end   chan struct{}
	once  bool
}

// Read implements io.Reader.
func (b *begun) Read(p []byte) (int, error) {
	if !b.once {
		b.once = true
		b.count.Add(1)
		return len(p), nil
	}
	<-b.end
	return 0, http.ErrBodyReadAfterClose
}

// Bodies are decoded into ten times their size: a program that sends many at once
// must not fill the sidecar's memory, by whatever protocol.
func TestReportMetricsHoldsFewBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(Config{Trial: pushTrial, Journal: filepath.Join(t.TempDir(), "journal")})
		if err != nil {
			t.Fatal(err)
		}
		routes, end := p.handlers.katib.routes(), make(chan struct{})
		var reading atomic.Int64
		answers := make([]*httptest.ResponseRecorder, 32)
		for i := range answers {
			r := httptest.NewRequest(http.MethodPost, "/api.v1.beta1.DBManager/ReportObservationLog", &begun{count: &reading, end: end})
			r.Header.Set("Content-Type", "application/grpc")
			answers[i] = httptest.NewRecorder()
			go routes.ServeHTTP(answers[i], r)
		}
		synctest.Wait()
		if got, most := reading.Load(), int64(maxBodies/maxBody); got != most {
			t.Errorf("%d bodies are read at a time, want %d", got, most)
		}
		<-time.After(roomPatience)
		synctest.Wait()
		refused := 0
		for _, a := range answers {
			if a.Header().Get("Grpc-Status") == strconv.Itoa(int(connect.CodeUnavailable)) {
				refused++
			}
		}
		if want := len(answers) - maxBodies/maxBody; refused != want {
			t.Errorf("%d of those for which there is no room are told to try again, want %d", refused, want)
		}
		close(end)
	})
}

func TestReportMetricsRefusesWhatIsTooLarge(t *testing.T) {
	p := startPush(t, "", "loss")
	_, err := katibClient(p.katib).ReportObservationLog(t.Context(), &katibv1beta1.ReportObservationLogRequest{
		TrialName: pushTrial, ObservationLog: katibLog("", "loss", strings.Repeat("1", maxBody))})
	if connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("error %v, want that it is too large", err)
	}
}
