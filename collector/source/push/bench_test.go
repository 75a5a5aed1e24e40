package push

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"
)

// BenchmarkPushReport is one client that reports one point a request.
func BenchmarkPushReport(b *testing.B) {
	path := filepath.Join(b.TempDir(), "s")
	push, err := New(Config{Trusted: listen(b, "unix", path), Journal: path + ".journal"})
	if err != nil {
		b.Fatal(err)
	}
	go push.Serve(b.Context())
	p := &pushed{t: b, client: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}}
	for b.Loop() {
		if status, text := p.send("POST", "http://collector/report", `{"loss": 0.125, "step": 1}`); status != 200 {
			b.Fatal(status, text)
		}
	}
}
