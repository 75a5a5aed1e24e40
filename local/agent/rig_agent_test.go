package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/textlogger"
)

// The agents of tests run in processes of their own. Each writes to the scheme that all
// clients of its process read (see Run), and that of the tests is read all the time.

// agentConfig is a Config as JSON, in which REST, Down and Log have no form.
type agentConfig struct {
	Config
	REST struct {
		Host            string
		TLSClientConfig rest.TLSClientConfig
	}
	Down, Log struct{}
}

// runAgent is the main function of such a process. As for `vernier agent`, SIGTERM says
// that the node goes down, and SIGINT that the agent ends. It ends with the tests too,
// which hold the other end of in.
func runAgent(in io.Reader) error {
	var c agentConfig
	if err := json.NewDecoder(in).Decode(&c); err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	ctx, end := signal.NotifyContext(context.Background(), syscall.SIGINT)
	defer end()
	down, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		end()
	}()
	c.Config.REST = &rest.Config{Host: c.REST.Host, TLSClientConfig: c.REST.TLSClientConfig}
	c.Config.Down, c.Config.Log = down.Done(), textlogger.NewLogger(textlogger.NewConfig())
	return Run(ctx, c.Config)
}

// start runs the agent until the node is ready.
func (r *rig) start() {
	r.t.Helper()
	program, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	c := agentConfig{Config: r.config}
	c.REST.Host, c.REST.TLSClientConfig = r.config.REST.Host, r.config.REST.TLSClientConfig
	agent, done := exec.Command(program), make(chan error, 1)
	// The locks of GPUs are below TMPDIR, out of reach of other runs of the tests. A race
	// must not be lost with an agent that is killed later.
	agent.Env = append(os.Environ(), helperEnv+"=agent", "TMPDIR="+world.dir, "GORACE=halt_on_error=1")
	agent.Stderr = r.t.Output()
	in, err := agent.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.agent, r.done = agent, done
	go func() { done <- agent.Wait() }()
	if err := json.NewEncoder(in).Encode(c); err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, "the node is ready", func() bool {
		if len(done) > 0 {
			r.t.Fatal("the agent ended")
		}
		node, err := r.client.CoreV1().Nodes().Get(r.t.Context(), r.node, metav1.GetOptions{})
		return err == nil && len(node.Status.Conditions) > 0 && len(node.Spec.Taints) == 0
	})
}

// stop ends the agent: with SIGTERM its pods end first, with SIGINT they go on, and so
// they do with SIGKILL, which is abrupt.
func (r *rig) stop(sig syscall.Signal) {
	r.t.Helper()
	if r.agent == nil {
		return
	}
	_ = r.agent.Process.Signal(sig) // it may have ended
	if err := <-r.done; err != nil && (sig != syscall.SIGKILL || err.Error() != "signal: killed") {
		r.t.Errorf("the agent ended: %v", err)
	}
	r.agent = nil
}
