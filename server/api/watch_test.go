package api

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/server/authn"
)

const patience = 30 * time.Second

// listen serves s at a URL, at the time that it is.
func listen(t *testing.T, s *service) *httptest.Server {
	t.Helper()
	s.Now = time.Now
	mux := http.NewServeMux()
	s.mount(mux)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// authorized sends the token that serve knows.
type authorized struct{ next http.RoundTripper }

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer any")
	return a.next.RoundTrip(r)
}

// watch streams what subscriptions tell.
func watch(t *testing.T, url string, subscriptions ...*vernierv1.Subscription) *connect.ServerStreamForClient[vernierv1.WatchResponse] {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	c := vernierv1.NewDashboardServiceClient(&http.Client{Transport: authorized{http.DefaultTransport}}, url)
	stream, err := c.Watch(ctx, &vernierv1.WatchRequest{Subscriptions: subscriptions})
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func read(t *testing.T, stream *connect.ServerStreamForClient[vernierv1.WatchResponse]) *vernierv1.WatchResponse {
	t.Helper()
	if !stream.Receive() {
		t.Fatal("the stream has ended: ", stream.Err())
	}
	return stream.Msg()
}

// fail ends a trial of s as failed.
func fail(t *testing.T, s *service, name, why string) {
	t.Helper()
	trial := &v1beta1.Trial{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: name}, trial); err != nil {
		t.Fatal(err)
	}
	trial.Status.Conditions = nil
	trial.MarkFailed(why, metav1.NewTime(noon))
	if err := s.Client.Status().Update(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
	s.Changes.Changed(trial)
}

func onTrials(since string) *vernierv1.Subscription {
	return &vernierv1.Subscription{Id: 1, Topic: &vernierv1.Subscription_Trials{Trials: parent}, Since: since}
}

func TestOneStreamTellsOfAllThatIsWatched(t *testing.T) {
	exp := searched()
	s := serve(t, interceptor.Funcs{}, exp, tried(exp, 0, "0.25", "sgd", 3), tried(exp, 1, "0.125", "adam", math.NaN()))
	measured(t, s, "1", "loss", 4)
	stream := watch(t, listen(t, s).URL, onTrials(""),
		&vernierv1.Subscription{Id: 2, Topic: &vernierv1.Subscription_Experiments{Experiments: "namespaces/ml"}},
		&vernierv1.Subscription{Id: 3, Topic: &vernierv1.Subscription_Series{Series: &vernierv1.GetSeriesRequest{Parent: parent, Trials: []int32{0, 1}}}})
	got := map[int32]*vernierv1.WatchResponse{}
	for range 3 {
		m := read(t, stream)
		got[m.GetId()] = m
	}
	if table := got[1].GetTrials(); !table.GetWhole() || !cmp.Equal(table.GetNumber(), []int32{0, 1}) {
		t.Errorf("the trials: %v", got[1])
	}
	if e := got[2].GetExperiments(); !e.GetWhole() || e.GetTotal() != 1 || e.GetExperiments()[0].GetName() != parent {
		t.Errorf("the experiments: %v", got[2])
	}
	if c := got[3].GetSeries().GetSeries(); len(c) != 1 || c[0].GetTrial() != 1 {
		t.Errorf("the curves: %v", got[3])
	}

	measured(t, s, "1", "loss", 4, 3)
	if c := read(t, stream).GetSeries().GetSeries(); len(c) != 1 || c[0].GetTrial() != 1 || !cmp.Equal(c[0].GetValue(), []float64{4, 3}) {
		t.Errorf("new points: %v", c)
	}
	fail(t, s, "exp-0001", "broken")
	if table := read(t, stream).GetTrials(); table.GetWhole() || !cmp.Equal(table.GetNumber(), []int32{1}) || table.GetMessage().GetTexts()[0] != "broken" {
		t.Errorf("a trial that failed: %v", table)
	}
	if err := s.Client.Delete(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	s.Changes.Changed(exp)
	for deleted, ended := false, false; !deleted || !ended; {
		m := read(t, stream)
		ended = ended || m.GetId() == 1 && m.GetEnd().GetReason() == ReasonNotFound
		deleted = deleted || cmp.Equal(m.GetExperiments().GetDeleted(), []string{parent})
	}
}

func TestAStreamGoesOnAtAnotherServer(t *testing.T) {
	exp := searched()
	s := serve(t, interceptor.Funcs{}, exp, tried(exp, 0, "0.25", "sgd", 3), tried(exp, 1, "0.125", "adam", math.NaN()))
	first := listen(t, s)
	stream := watch(t, first.URL, onTrials(""))
	revision := read(t, stream).GetTrials().GetRevision()
	first.CloseClientConnections()
	if stream.Receive() {
		t.Fatalf("the server is gone, and says %v", stream.Msg())
	}
	fail(t, s, "exp-0001", "broken meanwhile")
	other := newService(s.Config)
	if table := read(t, watch(t, listen(t, other).URL, onTrials(revision))).GetTrials(); table.GetWhole() || !cmp.Equal(table.GetNumber(), []int32{1}) {
		t.Errorf("what changed meanwhile: %v", table)
	}
	if table := read(t, watch(t, listen(t, other).URL, onTrials("another."+revision))).GetTrials(); !table.GetWhole() || len(table.GetNumber()) != 2 {
		t.Errorf("a revision of another experiment: %v", table)
	}
}

// What changes while a caller does not read is sent once.
func TestASlowReaderGetsWhatIsThereNow(t *testing.T) {
	exp := searched()
	s := serve(t, interceptor.Funcs{}, exp, tried(exp, 0, "0.25", "sgd", 3), tried(exp, 1, "0.125", "adam", 2))
	stream := watch(t, listen(t, s).URL, onTrials(""))
	read(t, stream)
	const changes = 300
	for i := range changes {
		fail(t, s, v1beta1.TrialName("exp", i%2), fmt.Sprint("failure ", i))
	}
	frames := 0
	for last := ""; last != fmt.Sprint("failure ", changes-1); frames++ {
		table := read(t, stream).GetTrials()
		last = table.GetMessage().GetTexts()[table.GetMessage().GetIndex()[len(table.GetNumber())-1]]
	}
	if frames > changes/2 {
		t.Errorf("%d changes came in %d messages", changes, frames)
	}
}

func TestACallerThatReadsNothingIsCutOff(t *testing.T) {
	exp := searched()
	objects := []client.Object{exp}
	for i := range 1000 {
		objects = append(objects, tried(exp, i, fmt.Sprint(float64(i)/1000), "sgd", math.NaN()))
	}
	s := serve(t, interceptor.Funcs{}, objects...)
	s.Now, s.patience = time.Now, 200*time.Millisecond
	mux := http.NewServeMux()
	s.mount(mux)
	ended := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r)
		close(ended)
	}))
	// The network holds less than the table.
	server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if tcp, ok := c.(*net.TCPConn); ok && state == http.StateNew {
			_ = tcp.SetWriteBuffer(1 << 12)
		}
	}
	server.Start()
	defer server.Close()
	small := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return c, c.(*net.TCPConn).SetReadBuffer(1 << 12)
	}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := vernierv1.NewDashboardServiceClient(&http.Client{Transport: authorized{small}}, server.URL, connect.WithAcceptCompression("gzip", nil, nil))
	stream, err := c.Watch(ctx, &vernierv1.WatchRequest{Subscriptions: []*vernierv1.Subscription{onTrials("")}})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("it is still waited for")
	}
	s.Changes.mu.Lock()
	left := len(s.Changes.listeners)
	s.Changes.mu.Unlock()
	if left > 0 {
		t.Error("its subscriptions are left")
	}
	for stream.Receive() { // what the network held
	}
	if stream.Err() == nil {
		t.Error("the stream ended as if nothing was missing")
	}
}

// revocable is OneToken until it is revoked.
type revocable struct {
	Access
	revoked *atomic.Bool
}

func (r revocable) Authenticate(ctx context.Context, request *http.Request) (authenticationv1.UserInfo, bool, error) {
	if r.revoked.Load() {
		return authenticationv1.UserInfo{}, false, nil
	}
	return r.Access.Authenticate(ctx, request)
}

func TestAStreamEndsWithItsToken(t *testing.T) {
	exp := searched()
	s := serve(t, interceptor.Funcs{}, exp, tried(exp, 0, "0.25", "sgd", math.NaN()))
	var revoked atomic.Bool
	s.Access = revocable{s.Access, &revoked}
	server := listen(t, s)
	s.Now = func() time.Time {
		if revoked.Load() {
			return noon.Add(rightsAgain)
		}
		return noon
	}
	stream := watch(t, server.URL, onTrials(""))
	read(t, stream)
	revoked.Store(true)
	fail(t, s, "exp-0000", "a secret")
	for stream.Receive() {
		if stream.Msg().GetTrials() != nil {
			t.Fatalf("it is told %v", stream.Msg())
		}
	}
	if connect.CodeOf(stream.Err()) != connect.CodeUnauthenticated {
		t.Errorf("it ends with %v", stream.Err())
	}
}

// named lets callers do everything, whom others know.
type named struct{ *reviews }

func (named) Allowed(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
	return true, nil
}

// signedIn sends what a proxy does that passes a token on, too.
type signedIn struct{ next http.RoundTripper }

func (a signedIn) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-User", "ann")
	return a.next.RoundTrip(r)
}

func TestAStreamThroughAProxyEnds(t *testing.T) {
	exp, trial := runs(t)
	s := serve(t, interceptor.Funcs{}, exp, trial, aPod("exp-0000-a", nil))
	proxy, err := authn.NewProxy(authn.ProxyConfig{UserHeaders: []string{"X-Forwarded-User"}, Sources: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	s.Access = named{Reviews(nil, proxy).(*reviews)}
	var until time.Time
	s.Logs = func(ctx context.Context, _, _ string, _ *corev1.PodLogOptions) (io.ReadCloser, error) {
		until, _ = ctx.Deadline()
		return io.NopCloser(strings.NewReader("")), nil
	}
	server := listen(t, s)
	var late atomic.Bool
	s.Now = func() time.Time {
		if late.Load() {
			return noon.Add(proxiedFor)
		}
		return noon
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := vernierv1.NewDashboardServiceClient(&http.Client{Transport: signedIn{authorized{http.DefaultTransport}}}, server.URL)
	log, err := c.ReadLogs(ctx, &vernierv1.ReadLogsRequest{Name: parent + "/trials/exp-0000", Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	if log.Receive() || log.Err() != nil || time.Until(until) > proxiedFor {
		t.Errorf("the log is followed until %s, and ends with %v", until, log.Err())
	}
	stream, err := c.Watch(ctx, &vernierv1.WatchRequest{Subscriptions: []*vernierv1.Subscription{onTrials("")}})
	if err != nil {
		t.Fatal(err)
	}
	read(t, stream)
	late.Store(true)
	fail(t, s, "exp-0000", "something else")
	if stream.Receive() || stream.Err() != nil {
		t.Errorf("it goes on with %v, %v", stream.Msg(), stream.Err())
	}
}

func TestAQuietStreamOverHTTP2StaysOpen(t *testing.T) {
	exp := searched()
	s := serve(t, interceptor.Funcs{}, exp, tried(exp, 0, "0.25", "sgd", math.NaN()))
	s.Now, s.patience = time.Now, 200*time.Millisecond
	mux := http.NewServeMux()
	s.mount(mux)
	ended := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r)
		close(ended)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := vernierv1.NewDashboardServiceClient(&http.Client{Transport: authorized{server.Client().Transport}}, server.URL, connect.WithGRPC())
	stream, err := c.Watch(ctx, &vernierv1.WatchRequest{Subscriptions: []*vernierv1.Subscription{onTrials("")}})
	if err != nil {
		t.Fatal(err)
	}
	read(t, stream)
	select {
	case <-ended:
		t.Fatal("the server has ended a stream on which nothing happens")
	case <-time.After(5 * s.patience):
	}
	fail(t, s, "exp-0000", "broken")
	read(t, stream)
}
