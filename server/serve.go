package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// shutdownGrace is how long calls may take to end once the server stops. A
// report takes milliseconds, and one that is cut off is sent again; an idle
// HTTP/2 connection would hold up the end by a second.
const shutdownGrace = 250 * time.Millisecond

const (
	// maxConnections bounds the connections of one server: each trial that runs has
	// one, which idles between reports and takes some 30 KiB.
	maxConnections = 8_000
	// maxCallsAtOnce bounds those of one connection. A collector makes one.
	maxCallsAtOnce = 16
)

// Serve answers requests on l until ctx ends, then lets running calls finish
// and closes l. It speaks HTTP/1 and HTTP/2; without TLS, HTTP/2 with prior
// knowledge, as gRPC clients use it. tlsConfig nil means no TLS. It has at most
// 8,000 connections; more wait until one ends.
func Serve(ctx context.Context, l net.Listener, h http.Handler, tlsConfig *tls.Config) error {
	l = netutil.LimitListener(l, maxConnections)
	s := &http.Server{
		Handler:           h,
		Protocols:         new(http.Protocols),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      time.Minute,
		// A collector whose program reports more rarely connects again. Pings do not
		// count.
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxCallsAtOnce,
			SendPingTimeout: time.Minute, PingTimeout: 15 * time.Second},
	}
	s.Protocols.SetHTTP1(true)
	if tlsConfig == nil {
		s.Protocols.SetUnencryptedHTTP2(true)
	} else {
		s.Protocols.SetHTTP2(true)
		s.TLSConfig = tlsConfig.Clone()
	}
	served := make(chan error, 1)
	go func() {
		if tlsConfig == nil {
			served <- s.Serve(l)
		} else {
			served <- s.ServeTLS(l, "", "")
		}
	}()
	select {
	case err := <-served:
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	err := s.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close()
	}
	<-served
	return err
}
