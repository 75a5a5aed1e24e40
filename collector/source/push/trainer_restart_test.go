package push

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// State is what the lines of the journal make of it, live and after a restart alike.
func TestTrainerStepOutlivesTheCollector(t *testing.T) {
	last := func(restart bool) int64 {
		path := filepath.Join(t.TempDir(), "journal")
		open := func() *Source {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			})
			p, err := New(Config{Trusted: l, Journal: path, Metrics: []string{"loss"}})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		p := open()
		send := func(body string) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/x/status", strings.NewReader(body))
			w := httptest.NewRecorder()
			p.handlers.routes().ServeHTTP(w, r)
			if w.Code != http.StatusOK {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
		}
		send(`{"trainerStatus":{"metrics":[{"name":"current_step","value":"10"},{"name":"loss","value":"1"}]}}`)
		send(`{"trainerStatus":{"metrics":[{"name":"current_step","value":"500"},{"name":"loss","value":"1"}]}}`)
		if restart {
			p = open()
		}
		send(`{"trainerStatus":{"metrics":[{"name":"loss","value":"0.5"}]}}`)
		return p.handlers.trainer.step
	}
	if live, again := last(false), last(true); live != again {
		t.Errorf("step %d live, %d after a restart", live, again)
	}
}
