package push

import (
	"fmt"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Slow senders of large bodies take all the room there is for those; a small
// report passes them.
func TestPushTakesSmallReportsBesideSlowLargeOnes(t *testing.T) {
	p := startPush(t, "")
	const slow = maxBodies/maxBody + 2
	for range slow {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.open, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer sourcetest.Shut(t, conn)
		fmt.Fprintf(conn, "POST /%s/report HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n[", pushToken, maxBody)
	}
	p.awaitRequests(slow)
	if status, text := p.report(`{"loss": 1}`); status != 200 {
		t.Errorf("status %d: %s", status, text)
	}
}

func TestPushSaysWhenItsSpaceIsUsedUp(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	drain := make(chan struct{})
	l := listen(t, "tcp", "127.0.0.1:0")
	push, err := New(Config{Guarded: l, Token: "t", Journal: journal, JournalLimit: 150, Drain: drain})
	if err != nil {
		t.Fatal(err)
	}
	go push.Serve(t.Context())
	p := &pushed{t: t, client: http.DefaultClient, base: "http://" + l.Addr().String() + "/t"}
	statuses := map[int]int{}
	for range 5 {
		status, text := p.report(`{"loss": 1}`)
		statuses[status]++
		if status == 507 && !strings.Contains(text, "used up") {
			t.Errorf("it says %q", text)
		}
	}
	if statuses[200] == 0 || statuses[507] == 0 || statuses[200]+statuses[507] != 5 {
		t.Errorf("statuses: %v", statuses)
	}
	close(drain)
	n := 0
	for _, err := range push.Points(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		n++
	}
	if n != statuses[200] {
		t.Errorf("%d points, %d were answered", n, statuses[200])
	}
	if info, err := os.Stat(journal); err != nil || info.Size() > 150 {
		t.Errorf("the journal: %v, %v", info, err)
	}
}

func TestPushSaysHowLargeABodyMayBe(t *testing.T) {
	p := startPush(t, "")
	want := fmt.Sprintf("it may have %d bytes; send it in parts", maxBody)
	body := `{"x": "` + strings.Repeat("x", maxBody) + `"}`
	if status, said := p.report(body); status != http.StatusRequestEntityTooLarge || !strings.Contains(said, want) || strings.Contains(said, "http:") {
		t.Errorf("report: %d %q, want 413 with %q", status, said, want)
	}
	if status, said := p.mlflow("POST /runs/log-batch", body); status != http.StatusRequestEntityTooLarge || !strings.Contains(fmt.Sprint(said["message"]), want) {
		t.Errorf("MLflow: %d %v, want 413 with %q", status, said, want)
	}
}
