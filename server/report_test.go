package server_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/protobuf/proto"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/server"
)

var (
	key     = bytes.Repeat([]byte("k"), report.MinKeySize)
	trial   = collector.TrialID{Namespace: "ns", Name: "random-0001", UID: "uid-1"}
	attempt = &vernierv1.Attempt{Id: "pod/0", StartedUnixNano: 1}
)

type fixture struct {
	store    collector.Store
	registry *prometheus.Registry
	woken    chan collector.TrialID
	url      string
	ca       string
}

func newFixture(t *testing.T, encrypted bool) *fixture {
	t.Helper()
	f := &fixture{registry: prometheus.NewRegistry(), woken: make(chan collector.TrialID, 100)}
	s, err := store.Open(t.Context(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if f.store, err = server.MeasureStore(s, f.registry); err != nil {
		t.Fatal(err)
	}
	path, handler, err := server.NewReportHandler(server.ReportConfig{Store: f.store,
		Keys: func() [][]byte { return [][]byte{key} }, OnPoints: func(id collector.TrialID) { f.woken <- id }, Metrics: f.registry})
	if err != nil {
		t.Fatal(err)
	}
	var tlsConfig *tls.Config
	scheme := "http"
	if encrypted {
		tlsConfig, f.ca = certificate(t)
		scheme = "https"
	}
	f.url = scheme + "://" + server.Listen(t, path, handler, func(ctx context.Context, l net.Listener, h http.Handler) error {
		return server.Serve(ctx, l, h, tlsConfig)
	})
	return f
}

func certificate(t *testing.T) (*tls.Config, string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}},
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func token(t *testing.T, trial collector.TrialID, expires time.Time) string {
	t.Helper()
	token, err := report.Sign(key, report.Claims{Trial: trial, Expires: expires})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (f *fixture) dial(t *testing.T, token, ca string) vernierv1.ReportServiceClient {
	t.Helper()
	client, err := report.Dial(report.DialConfig{URL: f.url, Token: token, CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func points(n int64) []*vernierv1.SourcePoints {
	var list []collector.Point
	for i := range n {
		list = append(list, collector.Point{Metric: "m", Value: float64(i), Step: i, Seq: i, Source: "stdout", Time: time.Now()})
	}
	return report.EncodePoints(list)
}

func TestAReportIsStoredAndItsTrialWoken(t *testing.T) {
	f := newFixture(t, false)
	client := f.dial(t, token(t, trial, time.Now().Add(time.Hour)), "")
	hello, err := client.Hello(t.Context(), &vernierv1.HelloRequest{Attempt: attempt})
	if err != nil || len(hello.Acked) > 0 || hello.Final {
		t.Errorf("first hello: %v, %v", hello, err)
	}
	answer, err := client.Report(t.Context(), &vernierv1.ReportRequest{Attempt: attempt, Points: points(3)})
	if err != nil || answer.Acked["stdout"] != 3 {
		t.Errorf("report: %v, %v", answer, err)
	}
	if got := <-f.woken; got != trial {
		t.Errorf("woken: %v", got)
	}
	if _, err = client.Report(t.Context(), &vernierv1.ReportRequest{Attempt: attempt, Note: proto.String("acc was not found")}); err != nil {
		t.Error(err)
	}
	<-f.woken
	if got, err := f.store.Attempts(t.Context(), trial.UID); err != nil || got[0].Note != "acc was not found" || got[0].Final {
		t.Errorf("attempts after an early note: %+v, %v", got, err)
	}
	if _, err = client.Report(t.Context(), &vernierv1.ReportRequest{Attempt: attempt, Final: true, Note: proto.String("note")}); err != nil {
		t.Error(err)
	}
	<-f.woken
	hello, err = client.Hello(t.Context(), &vernierv1.HelloRequest{Attempt: attempt})
	if err != nil || hello.Acked["stdout"] != 3 || !hello.Final {
		t.Errorf("second hello: %v, %v", hello, err)
	}
	want := []collector.AttemptState{{Attempt: collector.Attempt{ID: "pod/0", Started: time.Unix(0, 1).UTC()},
		Acked: map[string]int64{"stdout": 3}, Final: true, Note: "note"}}
	got, err := f.store.Attempts(t.Context(), trial.UID)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("attempts, %v (-want +got):\n%s", err, d)
	}
	if err := testutil.GatherAndCompare(f.registry, strings.NewReader(`
		# HELP vernier_measurements_ingested_total Points stored, by kind of source (stdout, file, tfevent, prometheus, wandb, push, other). A point sent twice counts twice.
		# TYPE vernier_measurements_ingested_total counter
		vernier_measurements_ingested_total{source="stdout"} 3
	`), "vernier_measurements_ingested_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(f.registry, "vernier_ingest_lag_seconds", "vernier_store_operation_duration_seconds"); err != nil || n != 5 {
		t.Errorf("%d series of lag and store operations (append, attempts, note, finish), %v", n, err)
	}
}

func TestTheUseOfAMachineWakesNoTrial(t *testing.T) {
	f := newFixture(t, false)
	client := f.dial(t, token(t, trial, time.Now().Add(time.Hour)), "")
	system := &vernierv1.Attempt{Id: collector.SystemAttempt, StartedUnixNano: 1}
	if _, err := client.Report(t.Context(), &vernierv1.ReportRequest{Attempt: system, Points: points(3)}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Report(t.Context(), &vernierv1.ReportRequest{Attempt: attempt, Points: points(1)}); err != nil {
		t.Fatal(err)
	}
	<-f.woken
	if len(f.woken) > 0 {
		t.Error("what is sampled has woken the trial")
	}
}

func TestATokenReportsForItsOwnTrialOnly(t *testing.T) {
	f := newFixture(t, false)
	other := collector.TrialID{Namespace: "ns", Name: "random-0002", UID: "uid-2"}
	for _, id := range []collector.TrialID{trial, other} {
		client := f.dial(t, token(t, id, time.Now().Add(time.Hour)), "")
		if _, err := client.Report(t.Context(), &vernierv1.ReportRequest{Attempt: attempt, Points: points(2)}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := f.store.Inventory(t.Context())
	var ids []collector.TrialID
	for _, info := range got {
		ids = append(ids, info.TrialID)
	}
	if d := cmp.Diff([]collector.TrialID{trial, other}, ids); d != "" || err != nil {
		t.Errorf("trials, %v (-want +got):\n%s", err, d)
	}
}

func TestCallsAreRefused(t *testing.T) {
	good := token(t, trial, time.Now().Add(time.Hour))
	long := strings.Repeat("x", report.MaxName+1)
	tests := map[string]struct {
		token      string
		request    *vernierv1.ReportRequest
		wantCode   connect.Code
		wantReason string
	}{
		"a forged token":                      {good[:len(good)-4] + "AAAA", &vernierv1.ReportRequest{Attempt: attempt, Points: points(2)}, connect.CodeUnauthenticated, "unauthenticated"},
		"not a token":                         {"x", &vernierv1.ReportRequest{Attempt: attempt, Points: points(2)}, connect.CodeUnauthenticated, "unauthenticated"},
		"an expired token":                    {token(t, trial, time.Now().Add(-time.Second)), &vernierv1.ReportRequest{Attempt: attempt, Points: points(2)}, connect.CodeUnauthenticated, "expired"},
		"a large batch, and an expired token": {token(t, trial, time.Now().Add(-time.Second)), &vernierv1.ReportRequest{Attempt: attempt, Points: points(4 * report.MaxBatch)}, connect.CodeUnauthenticated, "expired"},
		"no attempt":                          {good, &vernierv1.ReportRequest{Points: points(2)}, connect.CodeInvalidArgument, "invalid"},
		"a long attempt":                      {good, &vernierv1.ReportRequest{Attempt: &vernierv1.Attempt{Id: long}, Points: points(2)}, connect.CodeInvalidArgument, "invalid"},
		"uneven columns":                      {good, &vernierv1.ReportRequest{Attempt: attempt, Points: []*vernierv1.SourcePoints{{Source: "s", Value: []float64{1, 2}}}}, connect.CodeInvalidArgument, "invalid"},
		"a long name":                         {good, &vernierv1.ReportRequest{Attempt: attempt, Points: report.EncodePoints([]collector.Point{{Metric: long, Source: "s"}, {Metric: "m", Source: "s", Seq: 1}})}, connect.CodeInvalidArgument, "invalid"},
		"a long text":                         {good, &vernierv1.ReportRequest{Attempt: attempt, Points: report.EncodePoints([]collector.Point{{Metric: "m", Source: "s", Text: long}, {Metric: "m", Source: "s", Seq: 1}})}, connect.CodeInvalidArgument, "invalid"},
		"too many points":                     {good, &vernierv1.ReportRequest{Attempt: attempt, Points: points(4*report.MaxBatch + 1)}, connect.CodeInvalidArgument, "invalid"},
		"far too many bytes":                  {good, &vernierv1.ReportRequest{Attempt: attempt, Note: proto.String(strings.Repeat("x", 5<<20))}, connect.CodeResourceExhausted, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, false)
			_, err := f.dial(t, tc.token, "").Report(t.Context(), tc.request)
			if connect.CodeOf(err) != tc.wantCode {
				t.Errorf("%v, want %v", err, tc.wantCode)
			}
			if ids, err := f.store.Inventory(t.Context()); err != nil || len(ids) > 0 {
				t.Errorf("stored: %v, %v", ids, err)
			}
			if len(f.woken) > 0 {
				t.Error("a trial was woken")
			}
			if tc.wantReason == "" {
				return
			}
			if n, err := testutil.GatherAndCount(f.registry, "vernier_measurements_rejected_total"); err != nil || n != 1 {
				t.Errorf("%d series, %v", n, err)
			}
			families, _ := f.registry.Gather()
			for _, family := range families {
				if family.GetName() == "vernier_measurements_rejected_total" {
					if got := family.Metric[0].Label[0].GetValue(); got != tc.wantReason {
						t.Errorf("reason %q, want %q", got, tc.wantReason)
					}
				}
			}
		})
	}
}

// unread is a body that fails the test when it is read.
type unread struct{ t *testing.T }

// Read implements io.Reader.
func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

func TestTheBodyOfAStrangersCallIsNotRead(t *testing.T) {
	registry := prometheus.NewRegistry()
	s, err := store.Open(t.Context(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	path, handler, err := server.NewReportHandler(server.ReportConfig{Store: s, Keys: func() [][]byte { return [][]byte{key} }, Metrics: registry})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"application/proto", "application/json", "application/grpc", "application/grpc-web", "application/connect+proto", "text/plain", ""} {
		for _, method := range []string{"Report", "Hello", "Delete"} {
			r := httptest.NewRequest(http.MethodPost, path+method, unread{t})
			r.Header.Set("Content-Type", kind)
			r.Header.Set("Authorization", "Bearer v1.x.y")
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, r)
			said := answer.Code == http.StatusUnauthorized || answer.Header().Get("Grpc-Status") == "16" || strings.Contains(answer.Body.String(), "unauthenticated") ||
				strings.Contains(answer.Body.String(), "grpc-status: 16")
			if !said {
				t.Errorf("%s %s: %d %v %s", kind, method, answer.Code, answer.Header(), answer.Body)
			}
		}
	}
	if n, err := testutil.GatherAndCount(registry, "vernier_report_calls_total"); err != nil || n != 3 {
		t.Errorf("%d series of calls, %v, want Hello, Report and other", n, err)
	}
}

func TestAStoreThatFailsIsNoFaultOfTheCaller(t *testing.T) {
	f := newFixture(t, false)
	if err := f.store.Close(); err != nil {
		t.Fatal(err)
	}
	client := f.dial(t, token(t, trial, time.Now().Add(time.Hour)), "")
	_, err := client.Report(t.Context(), &vernierv1.ReportRequest{Attempt: attempt, Points: points(1)})
	if connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("report: %v", err)
	}
	if _, err = client.Hello(t.Context(), &vernierv1.HelloRequest{Attempt: attempt}); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("hello: %v", err)
	}
}

// Who operates the store finds in the log why it fails, though not once for each report.
func TestAStoreThatFailsIsLogged(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })

	f := newFixture(t, false)
	if err := f.store.Close(); err != nil {
		t.Fatal(err)
	}
	client := f.dial(t, token(t, trial, time.Now().Add(time.Hour)), "")
	var failed error
	for range 3 {
		_, failed = client.Report(t.Context(), &vernierv1.ReportRequest{Attempt: attempt, Points: points(1)})
	}
	var fault *connect.Error
	if !errors.As(failed, &fault) || strings.Count(out.String(), fault.Message()) != 1 {
		t.Errorf("three reports that failed with %v logged %q", failed, out.String())
	}
}

func TestTheServiceSpeaksTLSToThoseWhoKnowItsAuthority(t *testing.T) {
	f := newFixture(t, true)
	good := token(t, trial, time.Now().Add(time.Hour))
	for name, ca := range map[string]string{"PEM": f.ca, "base64 of PEM": base64.StdEncoding.EncodeToString([]byte(f.ca))} {
		if _, err := f.dial(t, good, ca).Hello(t.Context(), &vernierv1.HelloRequest{Attempt: attempt}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := f.dial(t, good, "").Hello(t.Context(), &vernierv1.HelloRequest{Attempt: attempt})
	var unknown x509.UnknownAuthorityError
	if err == nil || !errors.As(err, &unknown) && !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown authority: %v", err)
	}
}
