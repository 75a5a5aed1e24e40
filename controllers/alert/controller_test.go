package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/index"
)

// world is an experiment that has failed after seven minutes, and a webhook.
type world struct {
	*Controller
	t      *testing.T
	hook   *httptest.Server
	answer func(http.ResponseWriter)
	mu     sync.Mutex
	got    []string // path, Idempotency-Key and body of what came
	events *events.FakeRecorder
}

func newWorld(t *testing.T, secret map[string]string, annotations map[string]string) *world {
	t.Helper()
	w := &world{t: t, answer: func(http.ResponseWriter) {}, events: events.NewFakeRecorder(10)}
	w.hook = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Error(r.Method, r.Header, err)
		}
		w.mu.Lock()
		w.got = append(w.got, r.URL.Path+" "+r.Header.Get("Idempotency-Key")+" "+string(body))
		w.mu.Unlock()
		w.answer(rw)
	}))
	t.Cleanup(w.hook.Close)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	exp := running(func(e *v1beta1.Experiment) {
		e.Annotations = annotations
		e.MarkFailed(v1beta1.ReasonExperimentFailed, "All <b> have failed", at(7))
	})
	objects := []client.Object{exp}
	if secret != nil {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: v1beta1.SecretAlerts, CreationTimestamp: at(1)}, Data: map[string][]byte{}}
		for name, value := range secret {
			s.Data[name] = []byte(strings.ReplaceAll(value, "HOOK", w.hook.URL))
		}
		objects = append(objects, s)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	sender, err := NewSender([]string{"http://127.0.0.1:*"})
	if err != nil {
		t.Fatal(err)
	}
	w.Controller = &Controller{Options{Client: c, Reader: c, Recorder: w.events, Sender: sender, Dashboard: "https://tune.example.com/", Now: func() time.Time { return at(8).Time },
		Trials: func(context.Context, *v1beta1.Experiment) ([]*v1beta1.Trial, error) {
			return []*v1beta1.Trial{with(0, 2, "NaN")}, nil
		}}}
	return w
}

// look lets the controller look, and sorts what came by receiver.
func (w *world) look() error {
	_, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ml", Name: "exp"}})
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.got, func(a, b string) int { return strings.Compare(path(a), path(b)) })
	return err
}

func path(got string) string { return strings.SplitN(got, " ", 2)[0] }

// ids are the keys of what came, and clear what was.
func (w *world) ids() (ids []string) {
	for _, g := range w.got {
		words := strings.SplitN(g, " ", 3)
		ids = append(ids, words[0]+" "+words[1])
	}
	w.got = nil
	return ids
}

func TestAlertsAreSentOnce(t *testing.T) {
	w := newWorld(t, map[string]string{"mine": "HOOK/mine\n", "team": "slack+HOOK/team"}, nil)
	if err := w.look(); err != nil {
		t.Fatal(err)
	}
	var m Message
	if err := json.Unmarshal([]byte(strings.SplitN(w.got[1], " ", 3)[2]), &m); err != nil {
		t.Fatal(err)
	}
	want := Message{ID: "u/ExperimentFailed/1893586020", Reason: ExperimentFailed, Severity: "warning", Namespace: "ml", Experiment: "exp",
		Message: "All <b> have failed", Time: at(7).Time, URL: "https://tune.example.com/ns/ml/experiments/exp"}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var slack map[string]string
	if err := json.Unmarshal([]byte(strings.SplitN(w.got[3], " ", 3)[2]), &slack); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"text": ":warning: *ExperimentFailed* <https://tune.example.com/ns/ml/experiments/exp|ml/exp>: All &lt;b&gt; have failed"}, slack); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	all := []string{"/mine u/TrialDiverged/1", "/mine u/ExperimentFailed/1893586020", "/team u/TrialDiverged/1", "/team u/ExperimentFailed/1893586020"}
	if diff := cmp.Diff(all, w.ids()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Another manager sees what the last one did.
	if err := w.look(); err != nil || len(w.got) > 0 {
		t.Errorf("again: %v, %v", w.got, err)
	}
}

func TestAnAlertThatMayNotHaveArrivedIsSentAgain(t *testing.T) {
	w := newWorld(t, map[string]string{"mine": "HOOK/mine"}, nil)
	real := w.Client
	w.Client = interceptor.NewClient(real.(client.WithWatch), interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return errors.New("killed")
	}})
	if err := w.look(); err == nil {
		t.Fatal("it goes on as if it was noted")
	}
	first := w.ids()
	w.Client = real
	if err := w.look(); err != nil {
		t.Fatal(err)
	}
	if again := w.ids(); len(first) != 1 || again[0] != first[0] || len(again) != 2 {
		t.Errorf("%v, then %v", first, again)
	}
}

func TestAWebhookThatDoesNotAnswerIsTriedAgainForADay(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "HOOK/secret-of-a", "b": "HOOK/b"}, nil)
	w.answer = func(rw http.ResponseWriter) { rw.WriteHeader(http.StatusBadGateway) }
	err := w.look()
	if err == nil || strings.Contains(err.Error(), "secret-of-a") || !strings.Contains(err.Error(), "502") {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff([]string{"/b u/TrialDiverged/1", "/secret-of-a u/TrialDiverged/1"}, w.ids()); diff != "" {
		t.Errorf("it is asked again at once: %s", diff)
	}
	w.hook.CloseClientConnections()
	w.answer = func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	if err := w.look(); err == nil || strings.Contains(err.Error(), "secret-of-a") {
		t.Errorf("%v", err)
	}
	w.answer = func(http.ResponseWriter) {}
	w.got = nil
	if err := w.look(); err != nil || len(w.ids()) != 4 {
		t.Errorf("%v, %v", w.got, err)
	}
	old := newWorld(t, map[string]string{"a": "HOOK/a"}, nil)
	old.Now = func() time.Time { return at(8).Add(keepTrying) }
	if err := old.look(); err != nil || len(old.got) > 0 {
		t.Errorf("a day later: %v, %v", old.got, err)
	}
}

// One receiver that hangs keeps no other from its alerts, and is asked for one alone.
func TestAWebhookThatHangsHoldsUpNoOther(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "", "b": "HOOK/b"}, nil)
	hold, held, left := make(chan struct{}), make(chan struct{}, 2), make(chan struct{}, 2)
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then it is seen that the client leaves
		held <- struct{}{}
		select {
		case <-hold:
		case <-r.Context().Done():
			left <- struct{}{}
		}
	}))
	defer hangs.Close()
	s := &corev1.Secret{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: v1beta1.SecretAlerts}, s); err != nil {
		t.Fatal(err)
	}
	s.Data["a"] = []byte(hangs.URL)
	if err := w.Client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	came := make(chan struct{}, 2)
	w.answer = func(http.ResponseWriter) { came <- struct{}{} }
	looked := make(chan error, 1)
	go func() { looked <- w.look() }()
	<-held
	for range 2 {
		select {
		case <-came:
		case err := <-looked:
			t.Fatalf("it ends before the other one has its alerts: %v", err)
		case <-left:
			t.Fatal("the other one waits until the first is given up")
		}
	}
	hangs.CloseClientConnections()
	close(hold)
	if err := <-looked; err == nil || len(held) > 0 {
		t.Errorf("%v, and it was asked %d times more", err, len(held))
	}
}

// A trial that diverges while it runs wakes its experiment, once; other reports do not.
func TestATrialThatDivergesWakesItsExperiment(t *testing.T) {
	exp, trials := running(), index.New()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := trials.Wakes(diverges, 0).Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	var before *v1beta1.Trial
	for i, step := range []struct {
		loss  string
		wakes int
	}{{"", 0}, {"0.5", 0}, {"NaN", 1}, {"+Inf", 0}, {"0.5", 0}, {"-inf", 1}} {
		after := with(0, 1, step.loss)
		after.Namespace, after.Spec.Objective = "ml", exp.Spec.Objective
		after.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(exp, v1beta1.GroupVersion.WithKind("Experiment"))}
		trials.Put(before, after)
		before = after
		if queue.Len() != step.wakes {
			t.Fatalf("step %d, %q: it is woken %d times", i, step.loss, queue.Len())
		}
		for queue.Len() > 0 {
			got, _ := queue.Get()
			if queue.Done(got); got.String() != "ml/exp" {
				t.Errorf("%s is woken", got)
			}
		}
	}
}

func TestAReceiverBeyondTheLimitIsSaidNotToBeTold(t *testing.T) {
	secret := map[string]string{}
	for n := range maxReceivers + 3 {
		secret[fmt.Sprintf("r%02d", n)] = fmt.Sprintf("HOOK/r%02d", n)
	}
	w := newWorld(t, secret, nil)
	if err := w.look(); err != nil {
		t.Fatal(err)
	}
	if got := w.ids(); len(got) != 2*maxReceivers {
		t.Errorf("came %q", got)
	}
	if said := <-w.events.Events; !strings.Contains(said, "AlertNotSent") || !strings.Contains(said, "r10") || !strings.Contains(said, "no more than 10") {
		t.Errorf("it says %q", said)
	}
}

func TestWhatIsNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		secret      map[string]string
		annotations map[string]string
		before      bool // the Secret is newer than what happened
		answer      func(http.ResponseWriter)
		want        []string
		event       string
	}{
		"not asked for":                    {},
		"what was before":                  {secret: map[string]string{"a": "HOOK/a"}, before: true},
		"to those that are chosen":         {secret: map[string]string{"a": "HOOK/a", "b": "HOOK/b"}, annotations: map[string]string{v1beta1.AnnotationAlerts: " b,b"}, want: []string{"/b u/TrialDiverged/1", "/b u/ExperimentFailed/1893586020"}},
		"none is chosen":                   {secret: map[string]string{"a": "HOOK/a"}, annotations: map[string]string{v1beta1.AnnotationAlerts: ""}},
		"to one that is not there":         {secret: map[string]string{"a": "HOOK/a"}, annotations: map[string]string{v1beta1.AnnotationAlerts: "c"}, event: "no such entry"},
		"to what is no URL":                {secret: map[string]string{"a": "/etc/passwd"}, event: "is no URL"},
		"with a password":                  {secret: map[string]string{"a": "http://u:p@127.0.0.1/"}, event: "is no URL"},
		"to a host that is not allowed":    {secret: map[string]string{"a": "http://169.254.169.254/latest/meta-data"}, event: "by --alert-hosts"},
		"to a webhook that was taken away": {secret: map[string]string{"a": "HOOK/a"}, answer: func(rw http.ResponseWriter) { rw.WriteHeader(http.StatusGone) }, want: []string{"/a u/TrialDiverged/1", "/a u/ExperimentFailed/1893586020"}, event: "answers 410 Gone"},
		"to where it leads": {secret: map[string]string{"a": "HOOK/a"}, answer: func(rw http.ResponseWriter) {
			rw.Header().Set("Location", "/inside")
			rw.WriteHeader(http.StatusTemporaryRedirect)
		}, want: []string{"/a u/TrialDiverged/1", "/a u/ExperimentFailed/1893586020"}, event: "answers 307"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.secret, c.annotations)
			if c.answer != nil {
				w.answer = c.answer
			}
			if c.before {
				s := &corev1.Secret{}
				if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: v1beta1.SecretAlerts}, s); err != nil {
					t.Fatal(err)
				}
				s.CreationTimestamp = at(8)
				w.Reader = fake.NewClientBuilder().WithScheme(w.Client.Scheme()).WithObjects(running(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: v1beta1.SecretAlerts, CreationTimestamp: at(8)}, Data: s.Data}).Build()
			}
			for range 2 { // what is given up is given up
				if err := w.look(); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(c.want, w.ids()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			said := ""
			for len(w.events.Events) > 0 {
				said += <-w.events.Events + "\n"
			}
			if c.event == "" && said != "" || !strings.Contains(said, c.event) || strings.Count(said, "AlertNotSent") > 2 {
				t.Errorf("it says %q, want %q", said, c.event)
			}
		})
	}
}

func TestHostsThatMayBeSentTo(t *testing.T) {
	for name, c := range map[string]struct {
		allowed, to  string
		want, strict bool
	}{
		"the host":                     {"hooks.slack.com", "https://hooks.slack.com/x", true, false},
		"in capitals":                  {"hooks.slack.com", "https://Hooks.Slack.com/x", true, false},
		"without TLS":                  {"hooks.slack.com", "http://hooks.slack.com/x", false, false},
		"at another port":              {"hooks.slack.com", "https://hooks.slack.com:8443/x", false, false},
		"a host that begins as it":     {"hooks.slack.com", "https://hooks.slack.com.evil.example/x", false, false},
		"below a domain":               {"*.example.com", "https://a.b.example.com/x", true, false},
		"the domain itself":            {"*.example.com", "https://example.com/x", false, false},
		"a domain that ends as it":     {"*.example.com", "https://evilexample.com/x", false, false},
		"without TLS where it is said": {"http://bot.chat.svc:8065", "http://bot.chat.svc:8065/x", true, false},
		"any port":                     {"http://127.0.0.1:*", "http://127.0.0.1:9/x", true, false},
		"an address":                   {"[2001:db8::1]", "https://[2001:db8::1]/x", true, false},
		"an address at a port":         {"http://[::1]:8065", "http://[::1]:8065/x", true, false},
		"an address at another port":   {"http://[::1]:8065", "http://[::1]/x", false, false},
		"any host":                     {"*", "https://example.com/x", true, true},
		"any host without TLS":         {"*", "http://example.com/x", false, false},
		"any, and one that is named":   {"*,in.example", "https://in.example/x", true, false},
	} {
		s, err := NewSender(strings.Split(c.allowed, ","))
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(c.to)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.clientOf(u); (got != nil) != c.want || (got == s.strict) != c.strict {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, wrong := range []string{"", "ftp://x", "https://", "https://a/b", "a*b", "u@h", "a:", "a:b", "a:0", "a:65536", "a:1:2", "[::1", "::1", "[a]b"} {
		if _, err := NewSender([]string{wrong}); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

func TestNoPrivateAddressIsReachedByAnyHost(t *testing.T) {
	for address, public := range map[string]bool{
		"93.184.216.34:443": true, "[2606:2800:220:1::1]:443": true,
		"127.0.0.1:443": false, "[::1]:443": false, "10.0.0.1:443": false, "192.168.1.1:443": false, "172.16.0.1:443": false, "169.254.169.254:80": false,
		"[fd00::1]:443": false, "[fe80::1]:443": false, "[::ffff:127.0.0.1]:443": false, "0.0.0.0:443": false, "100.64.0.1:443": false, "224.0.0.1:443": false, "[64:ff9b::7f00:1]:443": false,
	} {
		if err := onlyPublic("tcp", address, nil); (err == nil) != public {
			t.Errorf("%s: %v", address, err)
		}
	}
	s, err := NewSender([]string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	hook := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer hook.Close()
	u, _ := url.Parse(strings.Replace(hook.URL, "127.0.0.1", "localhost", 1)) // a name that leads inside
	s.allowed[0].port = "*"
	for _, c := range []*http.Client{s.client, s.strict} {
		if transport, _ := c.Transport.(*http.Transport); (transport.Proxy != nil) != (c == s.client) {
			t.Error("a proxy is asked for any host, or is not for a host by name")
		}
	}
	var bad refused
	if err := s.send(t.Context(), receiver{url: u}, Message{}); !errors.As(err, &bad) || !strings.Contains(err.Error(), "is no public address") {
		t.Errorf("%v", err)
	}
}
