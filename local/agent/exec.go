package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	crilogs "k8s.io/cri-client/pkg/logs"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
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
	var code int
	if tty {
		code, err = runTerminal(ctx, client, r, argv, in, out, resize)
	} else {
		code, err = runPlain(ctx, client, r, argv, in, out, errOut)
	}
	if err == nil && code != 0 {
		return utilexec.CodeExitError{Err: fmt.Errorf("exit status %d", code), Code: code}
	}
	return err
}

// lingering is how long the streams of a command stay open that has ended, for
// what it has left behind.
const lingering = time.Second

// runPlain runs a command on pipes and returns its exit code.
func runPlain(ctx context.Context, client *shim.Client, r shim.Run, argv []string, in io.Reader, out, errOut io.Writer) (int, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	theirs, ours := []*os.File{null}, []*os.File(nil)
	defer func() {
		for _, f := range append(theirs, ours...) {
			_ = f.Close()
		}
	}()
	streams := [3]*os.File{null, null, null}
	if in != nil {
		from, to, err := os.Pipe()
		if err != nil {
			return 0, err
		}
		theirs, streams[0] = append(theirs, from), from
		go func() {
			// The command may end without reading all.
			_, _ = io.Copy(to, in)
			_ = to.Close()
		}()
	}
	var copying sync.WaitGroup
	for i, w := range []io.Writer{out, errOut} {
		if w == nil {
			continue
		}
		from, to, err := os.Pipe()
		if err != nil {
			return 0, err
		}
		theirs, ours, streams[i+1] = append(theirs, to), append(ours, from), to
		copying.Go(func() { _, _ = io.Copy(w, from) })
	}
	code, err := client.Exec(ctx, r.Name, r.Run, argv, streams, false)
	for _, f := range theirs {
		_ = f.Close()
	}
	for _, f := range ours {
		_ = f.SetReadDeadline(time.Now().Add(lingering))
	}
	copying.Wait()
	return code, err
}

// runTerminal runs a command on a terminal of its own and returns its exit code.
func runTerminal(ctx context.Context, client *shim.Client, r shim.Run, argv []string, in io.Reader, out io.Writer, resize <-chan remotecommand.TerminalSize) (int, error) {
	terminal, theirs, err := pty.Open()
	if err != nil {
		return 0, err
	}
	defer terminal.Close()
	go followSize(ctx, resize, func(size remotecommand.TerminalSize) {
		// It fails when the command has ended.
		_ = pty.Setsize(terminal, &pty.Winsize{Rows: size.Height, Cols: size.Width})
	})
	if in != nil {
		go func() { _, _ = io.Copy(terminal, in) }()
	}
	var copying sync.WaitGroup
	if out != nil {
		// A terminal answers with an error when its last program has ended.
		copying.Go(func() { _, _ = io.Copy(out, terminal) })
	}
	code, err := client.Exec(ctx, r.Name, r.Run, argv, [3]*os.File{theirs, theirs, theirs}, true)
	_ = theirs.Close()
	_ = terminal.SetReadDeadline(time.Now().Add(lingering))
	copying.Wait()
	return code, err
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

func (n *node) servePortForward(w http.ResponseWriter, r *http.Request) {
	pod := n.pods.find(r.PathValue("namespace"), r.PathValue("pod"))
	if pod == nil {
		http.Error(w, fmt.Sprintf("pod %s/%s is not on this node", r.PathValue("namespace"), r.PathValue("pod")), http.StatusNotFound)
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, execer{n}, pod.Name, string(pod.UID), options, streamIdle, streamCreation, portforward.SupportedProtocols)
}

// PortForward copies between a stream and a port on the pod's loopback address.
func (e execer) PortForward(ctx context.Context, _, uid string, port int32, stream io.ReadWriteCloser) error {
	client, _, err := shim.Attach(ctx, e.node.layout.shim(types.UID(uid)))
	if err != nil {
		return fmt.Errorf("the pod is not running: %w", err)
	}
	conn, err := client.Dial(ctx, net.JoinHostPort("localhost", strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	go func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.(*net.TCPConn).CloseWrite() // what the program still says is passed on
	}()
	_, err = io.Copy(stream, conn)
	return err
}
