package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/vernier-ml/vernier/server"
	"github.com/vernier-ml/vernier/server/api"
	"github.com/vernier-ml/vernier/server/demo"
	"github.com/vernier-ml/vernier/web"
)

const demoHelp = `Show the dashboard with experiments that are made up. They live in memory: no
instance is started, no trial runs, and nothing can be changed. The large one
goes on while it is looked at.`

type demoOptions struct {
	demo.Options
	listen, token, basePath string
}

func newDemoCommand() *cobra.Command {
	o := demoOptions{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the dashboard with made-up experiments of any size",
		Long:  demoHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Trials, "trials", 1_000, "trials of the large experiment, at most 100000")
	flags.IntVar(&o.Points, "points", 1_000, "points of each curve, at most 100000")
	flags.IntVar(&o.Running, "running", 8, "how many of its trials run; 0: it does not change")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of all that is made up")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "address to listen on")
	flags.StringVar(&o.basePath, "base-path", "/", "path below which a browser finds the page, as behind a proxy")
	flags.StringVar(&o.token, "token", "", "token of the dashboard (default: a random one)")
	return cmd
}

func (o demoOptions) run(ctx context.Context, out io.Writer) error {
	const most = 100_000
	if o.Trials < 1 || o.Trials > most || o.Points < 10 || o.Points > most || o.Running < 0 || o.Running > o.Trials {
		return fmt.Errorf("give 1 to %d trials, 10 to %d points, and no more running trials than there are", most, most)
	}
	if o.token == "" {
		o.token = rand.Text()
	}
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listen for browsers: %w", err)
	}
	d := demo.New(o.Options, time.Now)
	mux := http.NewServeMux()
	api.Mount(mux, d.Config(api.OneToken(o.token), version))
	if err := server.MountWeb(mux, web.Files(), o.basePath, func(h http.Handler) http.Handler { return h }); err != nil {
		return err
	}
	fmt.Fprintf(out, "http://%s%s#token=%s\n", l.Addr(), o.basePath, o.token)
	go d.Run(ctx, 500*time.Millisecond)
	return server.Serve(ctx, l, mux, nil)
}
