package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/store"
)

// from is a connection from an address. It notes that it was closed.
type from struct {
	net.Conn
	host   string
	closed atomic.Bool
}

func (f *from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.host), Port: 1} }

func (f *from) Close() error {
	f.closed.Store(true)
	return nil
}

func TestWhoHasTheMostConnectionsMakesWay(t *testing.T) {
	// Of four connections the last is one too many. Each is an address, and after a
	// slash the trial for which a call was accepted.
	tests := map[string]struct {
		opened []string
		want   int // which one is closed
	}{
		"a stranger with two":                        {[]string{"::1/a", "::2", "::2", "::3"}, 1},
		"the first, of who has the most":             {[]string{"::2/a", "::1", "::1", "::1"}, 1},
		"a trial with two, however many came since":  {[]string{"::1/a", "::2/a", "::3", "::4"}, 0},
		"of equals a stranger":                       {[]string{"::1/a", "::2", "::3/b", "::4/c"}, 1},
		"of strangers the first":                     {[]string{"::3/a", "::2", "::1", "::4"}, 1},
		"the newest, when the others are trials":     {[]string{"::1/a", "::2/b", "::3/c", "::4"}, 3},
		"trials behind one address are no strangers": {[]string{"::1/a", "::1/b", "::1/c", "::2"}, 3},
		"an address that may call is one owner":      {[]string{"::1/ ", "::1/ ", "::2", "::3"}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			all := newConnections(3, time.Hour)
			var conns []*from
			for _, text := range tc.opened {
				host, trial, known := bytes.Cut([]byte(text), []byte("/"))
				f := &from{host: string(host)}
				conns = append(conns, f)
				c := all.add(f)
				if known {
					accepted(inContext(t.Context(), c), string(bytes.TrimSpace(trial)))
				}
			}
			var closed []int
			for i, c := range conns {
				if c.closed.Load() {
					closed = append(closed, i)
				}
			}
			if diff := cmp.Diff([]int{tc.want}, closed); diff != "" || all.n != 3 {
				t.Errorf("%d are left; closed (-want +got):\n%s", all.n, diff)
			}
		})
	}
}

// Each of 5,000 trials has a connection that idles; some other opens what it can.
func TestATrialKeepsItsConnection(t *testing.T) {
	all := newConnections(maxConnections, time.Hour)
	var trials []*from
	for i := range 5000 {
		f := &from{host: "10.0.0.1"} // as behind a proxy
		trials = append(trials, f)
		accepted(inContext(t.Context(), all.add(f)), fmt.Sprint("uid-", i))
	}
	for i := range 2 * maxConnections {
		c := all.add(&from{host: fmt.Sprint("10.1.0.", i%3)})
		if i%2 == 0 {
			accepted(inContext(t.Context(), c), "uid-of-a-bad-one")
		}
	}
	for i, f := range trials {
		if f.closed.Load() {
			t.Fatalf("trial %d lost its connection", i)
		}
	}
	if all.n != maxConnections {
		t.Errorf("%d connections are open", all.n)
	}
}

func TestAClosedConnectionIsForgotten(t *testing.T) {
	all := newConnections(10, time.Hour)
	for range 2 {
		a, b := all.add(&from{host: "::1"}), all.add(&from{host: "::1"})
		accepted(inContext(t.Context(), b), "uid")
		if err := errors.Join(a.Close(), b.Close(), b.Close()); err != nil {
			t.Fatal(err)
		}
		accepted(inContext(t.Context(), b), "uid") // a call that was still on its way
	}
	if all.n != 0 || len(all.owners) != 0 {
		t.Errorf("%d are known, of %v", all.n, all.owners)
	}
}

func TestAStrangersTimeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newConnections(10, strangerTime)
		trial, stranger := &from{host: "::1"}, &from{host: "::2"}
		accepted(inContext(t.Context(), all.add(trial)), "uid")
		all.add(stranger)
		<-time.After(strangerTime - 1)
		if synctest.Wait(); stranger.closed.Load() {
			t.Error("a stranger is turned out before its time")
		}
		<-time.After(strangerTime)
		if synctest.Wait(); !stranger.closed.Load() || trial.closed.Load() || all.n != 1 {
			t.Errorf("stranger closed %v, trial closed %v, %d are left", stranger.closed.Load(), trial.closed.Load(), all.n)
		}
	})
}

// listenBound serves reports and returns the address.
func listenBound(t *testing.T, all *connections) string {
	t.Helper()
	s, err := store.Open(t.Context(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	path, handler, err := NewReportHandler(ReportConfig{Store: s, Keys: func() [][]byte { return [][]byte{connectionsKey()} }})
	if err != nil {
		t.Fatal(err)
	}
	return Listen(t, path, handler, func(ctx context.Context, l net.Listener, h http.Handler) error {
		return serve(ctx, boundListener{l, all}, h, nil)
	})
}

func connectionsKey() []byte { return bytes.Repeat([]byte("k"), report.MinKeySize) }

// idle opens a connection on which no call comes, and closes done when the server
// ends it.
func idle(t *testing.T, address string) (done chan struct{}) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	done = make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, conn) // its error is the end, too
		_ = conn.Close()
	}()
	return done
}

func TestStrangersGoAndTrialsStay(t *testing.T) {
	all := newConnections(4, time.Hour)
	address := listenBound(t, all)
	token, err := report.Sign(connectionsKey(), report.Claims{Trial: collector.TrialID{Name: "a-0001", UID: "uid-1"}, Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	client, err := report.Dial(report.DialConfig{URL: "http://" + address, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	hello := func() *connection {
		t.Helper()
		if _, err := client.Hello(t.Context(), &vernierv1.HelloRequest{Attempt: &vernierv1.Attempt{Id: "pod/0"}}); err != nil {
			t.Fatal(err)
		}
		all.mu.Lock()
		defer all.mu.Unlock()
		if has := all.owners[owner{name: "uid-1"}]; len(has) == 1 {
			return has[0]
		}
		t.Fatalf("the trial has %v", all.owners)
		return nil
	}
	first := hello()
	all.mu.Lock()
	all.patience = time.Second // of those that come now
	all.mu.Unlock()
	var strangers []chan struct{}
	for range 20 {
		strangers = append(strangers, idle(t, address))
	}
	for _, ended := range strangers {
		<-ended
	}
	if hello() != first {
		t.Error("the trial lost its connection")
	}
}
