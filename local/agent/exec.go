package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"time"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	crilogs "k8s.io/cri-client/pkg/logs"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/vernier-ml/vernier/local/shim"
)

const (
	streamIdle     = 4 * time.Hour
	streamCreation = 30 * time.Second
)

func (n *node) serveExec(w http.ResponseWriter, r *http.Request) {
	argv := r.URL.Query()["command"]
	if len(argv) == 0 {
		http.Error(w, "exec needs a command", http.StatusBadRequest)
		return
	}
	n.stream(w, r, func(pod *corev1.Pod, container string, options *remotecommand.Options) {
		remotecommand.ServeExec(w, r, execer{n}, pod.Name, string(pod.UID), container, argv, options,
			streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
	})
}

func (n *node) serveAttach(w http.ResponseWriter, r *http.Request) {
	n.stream(w, r, func(pod *corev1.Pod, container string, options *remotecommand.Options) {
		remotecommand.ServeAttach(w, r, execer{n}, pod.Name, string(pod.UID), container, options,
			streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
	})
}

// stream resolves a request for streams and has it served.
func (n *node) stream(w http.ResponseWriter, r *http.Request, serve func(*corev1.Pod, string, *remotecommand.Options)) {
	pod, c := n.find(w, r)
	if c == nil {
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	serve(pod, c.Name, options)
}

// execer runs commands beside containers, and attaches to containers, for the
// streaming library.
type execer struct{ node *node }

// running finds the running run of a container and its shim.
func (e execer) running(ctx context.Context, uid, container string) (*shim.Client, shim.Run, error) {
	client, state, err := shim.Attach(ctx, e.node.layout.shim(types.UID(uid)))
	if err != nil {
		return nil, shim.Run{}, fmt.Errorf("container %s is not running: %w", container, err)
	}
	r, ok := state.Latest(container)
	if !ok || r.Phase != shim.Running {
		return nil, shim.Run{}, fmt.Errorf("container %s is not running", container)
	}
	return client, r, nil
}

func (e execer) ExecInContainer(ctx context.Context, _, uid, container string, argv []string,
	in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	client, r, err := e.running(ctx, uid, container)
	if err != nil {
		return err
	}
	cmd, err := client.Command(ctx, r.Name, r.Run, argv)
	if err != nil {
		return err
	}
	// What the command leaves behind must not keep the streams open.
	cmd.WaitDelay = time.Second
	if tty {
		err = runTerminal(ctx, cmd, in, out, resize)
	} else {
		err = runPlain(ctx, cmd, in, out, errOut)
	}
	return exitError(err)
}

// runPlain runs a command on pipes.
func runPlain(ctx context.Context, cmd *exec.Cmd, in io.Reader, out, errOut io.Writer) error {
	if out != nil {
		cmd.Stdout = out
	}
	if errOut != nil {
		cmd.Stderr = errOut
	}
	var pipe io.WriteCloser
	if in != nil {
		// Given as Stdin, a reader that never ends would keep Wait from returning.
		var err error
		if pipe, err = cmd.StdinPipe(); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { killGroup(cmd) })()
	if in != nil {
		go func() {
			// The command may end without reading all.
			_, _ = io.Copy(pipe, in)
			_ = pipe.Close()
		}()
	}
	return cmd.Wait()
}

// runTerminal runs a command on a terminal of its own.
func runTerminal(ctx context.Context, cmd *exec.Cmd, in io.Reader, out io.Writer, resize <-chan remotecommand.TerminalSize) error {
	terminal, err := pty.Start(cmd)
	if err != nil {
		return err
	}
	defer terminal.Close()
	defer context.AfterFunc(ctx, func() { killGroup(cmd) })()
	go followSize(ctx, resize, func(size remotecommand.TerminalSize) {
		// It fails when the command has ended.
		_ = pty.Setsize(terminal, &pty.Winsize{Rows: size.Height, Cols: size.Width})
	})
	if in != nil {
		go func() { _, _ = io.Copy(terminal, in) }()
	}
	if out != nil {
		// A terminal answers with an error when its last program has ended.
		_, _ = io.Copy(out, terminal)
	}
	return cmd.Wait()
}

func followSize(ctx context.Context, resize <-chan remotecommand.TerminalSize, set func(remotecommand.TerminalSize)) {
	for {
		select {
		case size, ok := <-resize:
			if !ok {
				return
			}
			set(size)
		case <-ctx.Done():
			return
		}
	}
}

// exitError tells the streaming library of an exit code.
func exitError(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code := exit.ExitCode()
		if code < 0 {
			code = 137 // killed
		}
		return utilexec.CodeExitError{Err: err, Code: code}
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// AttachContainer follows the output of a running container from now on, and
// feeds its standard input where it has one.
func (e execer) AttachContainer(ctx context.Context, _, uid, container string,
	in io.Reader, out, errOut io.WriteCloser, _ bool, resize <-chan remotecommand.TerminalSize) error {
	client, r, err := e.running(ctx, uid, container)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if in != nil {
		go feedStdin(ctx, client, r, in)
	}
	go followSize(ctx, resize, func(size remotecommand.TerminalSize) {
		// A container without a terminal has no size.
		_ = client.Resize(ctx, r.Name, r.Run, size.Height, size.Width)
	})
	return e.node.followRun(ctx, types.UID(uid), r, out, errOut)
}

func feedStdin(ctx context.Context, client *shim.Client, r shim.Run, in io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := in.Read(buffer)
		eof := err != nil
		if writeErr := client.WriteStdin(ctx, r.Name, r.Run, buffer[:n], eof); writeErr != nil || eof {
			return
		}
	}
}

// followRun copies what a run writes from now on, until it ends.
func (n *node) followRun(ctx context.Context, uid types.UID, r shim.Run, out, errOut io.Writer) error {
	none := int64(0)
	options := crilogs.LogOptions{Follow: true, TailLines: &none}
	running := runProbe{dir: n.layout.shim(uid), container: r.Name, run: r.Run}
	// The reader skips a stream whose writer is nil, but not a nil inside an
	// interface.
	return crilogs.ReadLogs(ctx, n.layout.log(uid, r.Name, r.Run), "", &options, running, orDiscard(out), orDiscard(errOut))
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}
