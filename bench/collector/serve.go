package main

import (
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/server"
)

// serve is the report service as the manager runs it, in a process of its
// own. It prints its address, and ends with SIGTERM.
func serve(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	url := flags.String("store", "", "URL of the store")
	secret := flags.String("key", "", "signing key, hexadecimal")
	if err := flags.Parse(args); err != nil {
		return err
	}
	key, err := hex.DecodeString(*secret)
	if err != nil {
		return fmt.Errorf("-key: %w", err)
	}
	points, err := store.Open(ctx, *url)
	if err != nil {
		return err
	}
	defer func() {
		if closed := points.Close(); err == nil {
			err = closed
		}
	}()
	registry := prometheus.NewRegistry()
	measured, err := server.MeasureStore(points, registry)
	if err != nil {
		return err
	}
	path, handler, err := server.NewReportHandler(server.ReportConfig{
		Store: measured, Keys: func() [][]byte { return [][]byte{key} }, Metrics: registry})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, l.Addr())
	return server.Serve(ctx, l, mux, nil)
}
