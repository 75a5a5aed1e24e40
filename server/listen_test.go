package server

import (
	"context"
	"net"
	"net/http"
	"testing"
)

// Listen serves a handler on loopback until the test ends, and returns the address.
func Listen(t *testing.T, path string, handler http.Handler, serve func(context.Context, net.Listener, http.Handler) error) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, l, mux) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return l.Addr().String()
}
