package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/local"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type session struct {
	config    *rest.Config
	client    client.Client
	namespace string
	// home is the folder of the embedded instance; "" for another cluster.
	home string
	// started is true when this command started the embedded instance.
	started bool
	// note is how this shell differs from the one that started it, if it does.
	note string
	// words puts what the API server warns of into the words of a command line; nil: none
	// made the object.
	words func(string) string
}

// warnings are shown once each.
type warnings struct {
	session *session
	shown   rest.WarningHandler
}

// HandleWarningHeader implements rest.WarningHandler.
func (w warnings) HandleWarningHeader(code int, agent, text string) {
	if w.session.words != nil {
		text = w.session.words(text)
	}
	w.shown.HandleWarningHeader(code, agent, text)
}

func (s *session) connect() (err error) {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	s.config.WarningHandler = warnings{s, rest.NewWarningWriter(newConsole(os.Stderr), rest.WarningWriterOptions{Deduplicate: true})}
	s.client, err = client.New(s.config, client.Options{Scheme: scheme})
	return err
}

// key names an experiment or a trial in the session's namespace.
func (s *session) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: name}
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme))
}

type streams struct {
	in       io.Reader
	out, err io.Writer
}

// opener connects to the API server; with start, it first starts the embedded
// instance if it is not running.
type opener func(ctx context.Context, start bool) (*session, error)

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
		binaries, err := g.binaries(home)
		if err != nil {
			return nil, err
		}
		s.started, err = local.Up(ctx, home, binaries, g.sayProgress)
		if err != nil {
			// The caller may have to stop what was started.
			return s, err
		}
		if !s.started {
			s.note = home.DifferentShell(g.getenv)
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
	return s, s.connect()
}

// binaries are the programs of an instance. One that runs has its own, and needs none of
// this command's folder, which for that of the Python package has no others.
func (g *global) binaries(home local.Home) (local.Binaries, error) {
	binaries, err := local.FindBinaries(g.getenv("VERNIER_BIN_DIR"))
	if err != nil {
		if status, unread := local.ReadStatus(home); unread == nil && status.State == local.StateReady {
			return "", nil
		}
	}
	return binaries, err
}

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
		s := &session{config: config, namespace: namespace}
		s.config.QPS, s.config.Burst = 100, 200
		return s, s.connect()
	}
}
