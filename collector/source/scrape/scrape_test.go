package scrape

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// scrapeAnswer is what an endpoint says to one scrape.
type scrapeAnswer struct {
	status int // 0 means 200
	kind   string
	body   string
	then   func(w http.ResponseWriter) // instead of all this
}

func text(body string) scrapeAnswer { return scrapeAnswer{body: body} }

// endpoint answers the scrapes in turn, and closes drain with the last answer,
// which it then repeats.
type endpoint struct {
	*httptest.Server
	drain chan struct{}

	mu       sync.Mutex
	requests []*http.Request
}

func serve(t *testing.T, start func(http.Handler) *httptest.Server, answers ...scrapeAnswer) *endpoint {
	t.Helper()
	e := &endpoint{drain: make(chan struct{})}
	e.Server = start(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		a := answers[min(len(e.requests), len(answers)-1)]
		e.requests = append(e.requests, req)
		if len(e.requests) == len(answers) {
			close(e.drain)
		}
		if a.then != nil {
			a.then(w)
			return
		}
		w.Header().Set("Content-Type", a.kind)
		if a.status != 0 {
			w.WriteHeader(a.status)
		}
		if _, err := io.WriteString(w, a.body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(e.Close)
	return e
}

// scraped runs a scrape to its end. The last page may take as long as any: how fast
// a busy machine answers is no matter of these tests.
func scraped(t *testing.T, cfg Config) (points []string, errs []string) {
	t.Helper()
	cfg.LastPatience = scrapeTimeout
	src, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	read, errs := sourcetest.Collected(t, src)
	for seq, p := range read {
		if p.Seq != int64(seq) || p.Source != "prometheus:"+cfg.URL || p.Time.IsZero() {
			t.Errorf("point %+v, want Seq %d, the source's name and a time", p, seq)
		}
		points = append(points, fmt.Sprintf("%s=%v at %d", p.Metric, p.Value, p.Step))
	}
	return points, errs
}

func TestScrape(t *testing.T) {
	tests := map[string]struct {
		metrics []string
		answers []scrapeAnswer
		want    []string
	}{
		"a gauge that is not set yet": {
			answers: []scrapeAnswer{text("loss 0.0\n"), text("loss 0.0\n"), text("loss 0.5\n"), text("loss 0\n")},
			want:    []string{"loss=0.5 at -1", "loss=0 at -1"},
		},
		"a gauge that is set at the end of an epoch, whose number is set at its beginning": {
			answers: []scrapeAnswer{text("loss 0.0\nepoch 0\n"), text("loss 0.0\nepoch 1\n"), text("loss 0.5\nepoch 1\n")},
			want:    []string{"loss=0.5 at 1"},
		},
		"a metric that is 0 in several steps": {
			answers: []scrapeAnswer{text("loss 0\nstep 0\n"), text("loss 0\nstep 1\n"), text("loss 0\nstep 2\n"), text("loss 0\nstep 3\n")},
			want:    []string{"loss=0 at 2", "loss=0 at 3"},
		},
		"a metric that is 0 to the end": {
			answers: []scrapeAnswer{text("loss 0\nstep 7\n"), text("loss 0\nstep 7\n")},
			want:    []string{"loss=0 at 7"},
		},
		"a 0 that has a time": {
			answers: []scrapeAnswer{text("loss 0 1000\n"), text("loss 0.5 2000\n")},
			want:    []string{"loss=0 at -1", "loss=0.5 at -1"},
		},
		"each new value once": {
			answers: []scrapeAnswer{text("loss 3\n"), text("loss 3\n"), text("loss 2\n"), text("loss 2\n"), text("loss 3\n")},
			want:    []string{"loss=3 at -1", "loss=2 at -1", "loss=3 at -1"},
		},
		"a value that stays the same in a new step": {
			answers: []scrapeAnswer{text("loss 3\nstep 1\n"), text("loss 3\nstep 2\n"), text("loss 3\nstep 2\n")},
			want:    []string{"loss=3 at 1", "loss=3 at 2"},
		},
		"a value that was measured again, as its timestamp says": {
			answers: []scrapeAnswer{text("loss 3 1000\n"), text("loss 3 2000\n"), text("loss 3 2000\n")},
			want:    []string{"loss=3 at -1", "loss=3 at -1"},
		},
		"nan and the infinities": {
			answers: []scrapeAnswer{text("loss NaN\n"), text("loss NaN\n"), text("loss +Inf\n"), text("loss -Inf\n")},
			want:    []string{"loss=NaN at -1", "loss=+Inf at -1", "loss=-Inf at -1"},
		},
		"labels": {
			metrics: []string{`loss{split="test"}`, `loss{split=~"tr.*"}`},
			answers: []scrapeAnswer{text("loss{split=\"train\"} 1\nloss{split=\"test\"} 2\n")},
			want:    []string{`loss{split="test"}=2 at -1`, `loss{split=~"tr.*"}=1 at -1`},
		},
		"histograms by their lines": {
			metrics: []string{"t_sum", "t_count", `t_bucket{le="1"}`},
			answers: []scrapeAnswer{text("# TYPE t histogram\nt_bucket{le=\"1\"} 3\nt_bucket{le=\"+Inf\"} 4\nt_sum 2.5\nt_count 4\n")},
			want:    []string{"t_sum=2.5 at -1", "t_count=4 at -1", `t_bucket{le="1"}=3 at -1`},
		},
		"the finest step": {
			answers: []scrapeAnswer{text("epoch 1\nglobal_step 100\nstep 5\nloss 1\n")},
			want:    []string{"loss=1 at 100"},
		},
		"a step with the metric's own beginning": {
			metrics: []string{"train_loss"},
			answers: []scrapeAnswer{text("train_loss 1\ntrain_epoch 4\n")},
			want:    []string{"train_loss=1 at 4"},
		},
		"a step that is counted": {
			metrics: []string{"app_train_loss"},
			answers: []scrapeAnswer{text("app_train_loss 1\napp_steps 9\napp_step_total 7\n")},
			want:    []string{"app_train_loss=1 at 7"},
		},
		"what Lightning calls loss_step is no step": {
			metrics: []string{"train_loss"},
			answers: []scrapeAnswer{text("train_loss 1\ntrain_loss_step 3\n")},
			want:    []string{"train_loss=1 at -1"},
		},
		"a step that is a wanted metric is not a step": {
			metrics: []string{"loss", "epoch"},
			answers: []scrapeAnswer{text("loss 1\nepoch 3\nstep 9\n")},
			want:    []string{"loss=1 at 9", "epoch=3 at 9"},
		},
		"the step of the same labels": {
			metrics: []string{`loss{rank="1"}`},
			answers: []scrapeAnswer{text("loss{rank=\"1\"} 5\nstep{rank=\"0\"} 2\nstep{rank=\"1\"} 3\n")},
			want:    []string{`loss{rank="1"}=5 at 3`},
		},
		"a step that is no whole number": {
			answers: []scrapeAnswer{text("loss 1\nglobal_step 1.5\nepoch 2\n")},
			want:    []string{"loss=1 at 2"},
		},
		"a metric that comes late": {
			metrics: []string{"loss", "acc"},
			answers: []scrapeAnswer{text("loss 1\n"), text("loss 1\nacc 0.5\n")},
			want:    []string{"loss=1 at -1", "acc=0.5 at -1"},
		},
		"lines that end as on Windows": {answers: []scrapeAnswer{text("loss 1\r\n")}, want: []string{"loss=1 at -1"}},
		"OpenMetrics": {
			answers: []scrapeAnswer{{kind: "application/openmetrics-text; version=1.0.0", body: "loss 1 12.5 # {a=\"b\"} 1\n# EOF\n"}},
			want:    []string{"loss=1 at -1"},
		},
		"an endpoint that hangs up, and comes back": {
			answers: []scrapeAnswer{text("loss 3\n"), {then: hangUp}, text("loss 2\n")},
			want:    []string{"loss=3 at -1", "loss=2 at -1"},
		},
		"a compressed page": {answers: []scrapeAnswer{{then: compressed("loss 7\n")}}, want: []string{"loss=7 at -1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := serve(t, httptest.NewServer, test.answers...)
			if test.metrics == nil {
				test.metrics = []string{"loss"}
			}
			points, errs := scraped(t, Config{URL: e.URL + "/metrics", Metrics: test.metrics, Drain: e.drain, Clock: sourcetest.Quick()})
			if diff := cmp.Diff(test.want, points); diff != "" {
				t.Errorf("points (-want +got):\n%s", diff)
			}
			if len(errs) > 0 {
				t.Errorf("errors %q", errs)
			}
		})
	}
}

func hangUp(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_ = conn.Close()
}

func compressed(body string) func(http.ResponseWriter) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, body)
	if err = errors.Join(err, z.Close()); err != nil {
		panic(err)
	}
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(b.Bytes()) // the client may have had enough
	}
}

func TestScrapeSaysWhatIsWrong(t *testing.T) {
	bomb := strings.Repeat("#"+strings.Repeat(" ", 1022)+"\n", maxPage/1024)
	tests := map[string]struct {
		metrics []string
		answer  scrapeAnswer
		want    []string // points
		errs    []string // parts of the errors
	}{
		"a page that is not there": {answer: scrapeAnswer{status: 404, body: "no"}, errs: []string{"answered 404 Not Found", "loss was not found"}},
		"a redirect":               {answer: scrapeAnswer{status: 302}, errs: []string{"answered 302 Found; it must answer 200 itself, redirects are not followed", "was not found"}},
		"a page of HTML":           {answer: text("<html>\nloss 1\n"), want: []string{"loss=1 at -1"}, errs: []string{`"<html>": the line is not of the Prometheus text format`}},
		"a line that breaks off":   {answer: text("loss 1\nacc 0.1"), metrics: []string{"loss", "acc"}, want: []string{"loss=1 at -1"}, errs: []string{"breaks off within a line", "acc was not found"}},
		"a mistyped name":          {metrics: []string{"val_los"}, answer: text("val_loss 1\nup 1\n"), errs: []string{"val_los was not found: did you mean val_loss?"}},
		"other labels":             {metrics: []string{`loss{a="b"}`}, answer: text("loss{a=\"c\"} 1\n"), errs: []string{`loss{a="b"} was not found: loss is there, with other labels`}},
		"a name like none":         {metrics: []string{"acc"}, answer: text("loss 1\n"), errs: []string{"acc was not found"}},
		"several series":           {answer: text("loss{a=\"y\"} 1\nloss{a=\"x\"} 2\n"), want: []string{"loss=2 at -1"}, errs: []string{`the metric loss is several series; loss{a="x"} is read: name the metric by its labels, as loss{a="y"}`}},
		"a series without labels":  {answer: text("loss{a=\"x\"} 2\nloss 3\n"), want: []string{"loss=3 at -1"}, errs: []string{`loss is read: name the metric by its labels, as loss{a="x"}`}},
		"a line without end":       {answer: text("a{b=\"" + strings.Repeat("x", maxPageLine) + "\"} 1\nloss 1\n"), want: []string{"loss=1 at -1"}, errs: []string{"the line is longer than 65536 bytes"}},
		"a page without end":       {answer: scrapeAnswer{then: compressed("loss 1\n" + bomb + "loss 2\n")}, want: []string{"loss=1 at -1"}, errs: []string{"the page is larger than 4194304 bytes"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := serve(t, httptest.NewServer, test.answer)
			if test.metrics == nil {
				test.metrics = []string{"loss"}
			}
			points, errs := scraped(t, Config{URL: e.URL, Metrics: test.metrics, Drain: e.drain, Clock: sourcetest.Quick()})
			if diff := cmp.Diff(test.want, points); diff != "" {
				t.Errorf("points (-want +got):\n%s", diff)
			}
			if len(errs) != len(test.errs) {
				t.Fatalf("errors %q, want %q", errs, test.errs)
			}
			for i, want := range test.errs {
				if !strings.Contains(errs[i], want) {
					t.Errorf("error %q, want one with %q", errs[i], want)
				}
			}
		})
	}
}

// TestScrapeAfterAnother holds that a collector that starts again neither
// doubles a value nor changes the series that it reads.
func TestScrapeAfterAnother(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	first := serve(t, httptest.NewServer, text("loss{a=\"m\"} 1\n"))
	points, errs := scraped(t, Config{URL: first.URL, Metrics: []string{"loss"}, State: state, Drain: first.drain, Clock: sourcetest.Quick()})
	if diff := cmp.Diff([]string{"loss=1 at -1"}, points); diff != "" || len(errs) > 0 {
		t.Fatalf("points (-want +got):\n%s\nerrors %q", diff, errs)
	}
	last := map[string]collector.Point{"loss": {Metric: "loss", Value: 1, Step: -1, Time: time.Unix(1, 0)}}
	second := serve(t, httptest.NewServer, text("loss{a=\"a\"} 7\nloss{a=\"m\"} 1\n"), text("loss{a=\"a\"} 7\nloss{a=\"m\"} 2\n"))
	points, errs = scraped(t, Config{URL: second.URL, Metrics: []string{"loss"}, State: state, Last: last, Drain: second.drain, Clock: sourcetest.Quick()})
	if diff := cmp.Diff([]string{"loss=2 at -1"}, points); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	if len(errs) != 1 || !strings.Contains(errs[0], `loss{a="m"} is read`) {
		t.Errorf("errors %q, want that of several series", errs)
	}
}

func TestScrapeSendsHeaders(t *testing.T) {
	e := serve(t, httptest.NewTLSServer, text("loss 1\n"))
	header := http.Header{"authorization": {"Bearer x"}, "Host": {"trainer.local"}}
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	points, errs := scraped(t, Config{URL: e.URL, Header: header, Metrics: []string{"loss"}, Drain: e.drain, Clock: sourcetest.Quick()})
	if len(points) != 1 || len(errs) > 0 {
		t.Fatalf("points %q, errors %q", points, errs)
	}
	got := e.requests[0]
	if got.Header.Get("Authorization") != "Bearer x" || got.Host != "trainer.local" || !strings.HasPrefix(got.Header.Get("Accept"), "text/plain") {
		t.Errorf("request for %s with %v", got.Host, got.Header)
	}
}

func TestScrapeRefuses(t *testing.T) {
	tests := map[string]Config{
		"no address":         {Metrics: []string{"loss"}},
		"another scheme":     {URL: "ftp://x/", Metrics: []string{"loss"}},
		"no metrics":         {URL: "http://x/"},
		"a broken selector":  {URL: "http://x/", Metrics: []string{"loss{"}},
		"a broken address":   {URL: "http://[", Metrics: []string{"loss"}},
		"an address of none": {URL: "http:///metrics", Metrics: []string{"loss"}},
	}
	for name, cfg := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := New(cfg); err == nil {
				t.Error("no error")
			}
		})
	}
}
