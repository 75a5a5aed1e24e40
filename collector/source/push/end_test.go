package push

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

func TestPushRefusesWhatComesTooLate(t *testing.T) {
	p := startPush(t, "")
	p.report(`{"loss": 1}`)
	if got := p.end(); len(got) != 1 {
		t.Errorf("points: %v", got)
	}
	for _, path := range []string{"/report", "/api/2.0/mlflow/runs/create", "/apis/trainer.kubeflow.org/v1alpha1/namespaces/n/trainjobs/j/status"} {
		status, text := p.send("POST", p.base+path, `{"loss": 2, "trainerStatus": {"metrics": [{"name": "loss", "value": "1"}]}}`)
		if status != http.StatusGone || !strings.Contains(text, "the program has ended") {
			t.Errorf("%s: status %d: %s", path, status, text)
		}
	}
	p.stop()
	if conn, err := net.Dial("tcp", strings.TrimPrefix(p.open, "http://")); err == nil {
		sourcetest.Shut(t, conn)
		t.Error("the listener is still open")
	}
}

// A request that is on its way when the program ends is taken.
func TestPushWaitsForWhatIsOnItsWay(t *testing.T) {
	quiet := make(chan time.Time)
	p := startPushBy(t, source.Clock{After: func(time.Duration) <-chan time.Time { return quiet }}, "")
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.open, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer sourcetest.Shut(t, conn)
	body := `{"loss": 7}`
	fmt.Fprintf(conn, "POST /%s/report HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", pushToken, len(body), body[:3])
	p.awaitRequests(1)
	close(p.drain)
	for range maxQuiets - 2 {
		select {
		case quiet <- time.Time{}:
		case <-p.done:
			t.Fatal("it did not wait for the request")
		}
	}
	if _, err := io.WriteString(conn, body[3:]); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // Shut closes it
	if err != nil {
		t.Fatal(err)
	}
	defer sourcetest.Shut(t, answer.Body)
	if answer.StatusCode != http.StatusOK {
		t.Errorf("status %d", answer.StatusCode)
	}
	close(quiet)
	<-p.done
	if diff := cmp.Diff([]string{"loss=7 at -1"}, describe(inOrder(p.rec))); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}

func TestPushEndsWithItsContext(t *testing.T) {
	p := startPush(t, "")
	p.report(`{"loss": 1}`)
	p.stop()
	if <-p.done && p.push.failed != nil {
		t.Errorf("it failed: %v", p.push.failed)
	}
}
