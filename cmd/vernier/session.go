package main

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/vernier-ml/vernier/local"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// session is what a command that talks to an API server works with.
type session struct {
	config    *rest.Config
	namespace string
	// home is the folder of the embedded instance; "" for another cluster.
	home string
	// started is true when this command started the embedded instance.
	started bool
}

// streams are a command's input and outputs.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// opener connects to the API server; with start, it first starts the embedded
// instance if it is not running.
type opener func(ctx context.Context, start bool) (*session, error)

// isUnreachable says whether nothing answers at the server's address.
func isUnreachable(err error) bool {
	var network *net.OpError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &network)
}

// embedded connects to the embedded instance of the home that --home names.
func (g *global) embedded(ctx context.Context, start bool) (*session, error) {
	home, err := g.instanceHome()
	if err != nil {
		return nil, err
	}
	s := &session{home: string(home), namespace: g.namespace}
	if start {
		binaries, err := local.FindBinaries(g.getenv("VERNIER_BIN_DIR"))
		if err != nil {
			return nil, err
		}
		s.started, err = local.Up(ctx, home, binaries, g.sayProgress)
		if err != nil {
			return nil, err
		}
	}
	status, err := local.ReadStatus(home)
	if err != nil {
		return nil, err
	}
	if status.State != local.StateReady {
		return nil, &exitError{code: exitUnreachable, err: notReady(home, status)}
	}
	s.config, err = clientcmd.BuildConfigFromFlags("", home.Kubeconfig())
	if err != nil {
		return nil, err
	}
	if s.namespace == "" {
		s.namespace = "default"
	}
	s.config.QPS, s.config.Burst = 100, 200
	return s, nil
}

// pluginOpener connects as kubectl does, with the user's own kubeconfig.
func pluginOpener(flags *genericclioptions.ConfigFlags) opener {
	return func(context.Context, bool) (*session, error) {
		config, err := flags.ToRESTConfig()
		if err != nil {
			return nil, err
		}
		namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return nil, err
		}
		return &session{config: config, namespace: namespace}, nil
	}
}
