package command

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/source/push"
)

// Files of the Push kind in the shared directory, beside those that the contract
// names.
const (
	pushJournal   = "push.journal"
	pushAddresses = "push.json"
	pushSocket    = "push.sock"
	pushArtifacts = "mlflow"
	// The kernel's limit for the path of a unix socket, less its end.
	maxSocketPath = 107
	// sharedHost in a flag means an address that no other trial has.
	sharedHost = "shared"
	// sharedTries is how many of those are tried. Of 4 million, they are all
	// taken only where none can be had.
	sharedTries = 64
	// keptPatience is how long the addresses that programs know are waited for in
	// all, and keptPause how often they are tried.
	keptPatience = 5 * time.Second
	keptPause    = 20 * time.Millisecond
)

// addresses are where a collector listens. They are kept, so that one that is
// started again is found where the last one was.
type addresses struct {
	Push  string `json:"push,omitempty"`
	Katib string `json:"katib,omitempty"`
}

// preparePush listens before the program is started, so that the program always finds
// it, and keeps what is pushed on disk until the service can be asked.
func preparePush(ctx context.Context, r *runner, a *attempt) (opener, error) {
	if err := os.MkdirAll(r.cfg.dir, 0o777); err != nil {
		return nil, err
	}
	socket, err := listenUnix(ctx, cmp.Or(r.cfg.path, filepath.Join(r.cfg.dir, pushSocket)))
	if err != nil {
		return nil, err
	}
	cfg := push.Config{
		Trusted: socket, Token: r.cfg.pushToken, Trial: r.cfg.trial, Seed: r.cfg.podUID,
		Journal: filepath.Join(r.cfg.dir, pushJournal), Artifacts: filepath.Join(r.cfg.dir, pushArtifacts),
		Metrics: r.cfg.metrics, Drain: a.over.Done(),
	}
	ended := a.over.Err() != nil // no program is left to push, and an earlier reading may still have the ports
	if !ended {
		// A port that is taken must not cost the trial its other ways to report.
		cfg.Guarded, cfg.Katib, cfg.Trouble = listenTCP(ctx, a.over, r.cfg)
	}
	var pushed *push.Source
	if err = makeShared(cfg.Artifacts); err == nil {
		pushed, err = push.New(cfg)
	}
	if err == nil && !ended {
		err = tellProgram(r.cfg, cfg)
	}
	if err != nil {
		for _, l := range []net.Listener{cfg.Trusted, cfg.Guarded, cfg.Katib} {
			if l != nil {
				err = errors.Join(err, l.Close())
			}
		}
		return nil, err
	}
	go pushed.Serve(ctx)
	r.journalEnd = pushed.End
	return r.sessions(ctx, a, r.split(pushed)), nil
}

// listenTCP listens where the flags say. trouble says what could not be had. Once
// over ends no program is left to push, and nothing is waited for.
func listenTCP(ctx, over context.Context, cfg runConfig) (push, katib net.Listener, trouble error) {
	waiting, cancel := context.WithTimeout(over, keptPatience)
	defer cancel()
	var kept addresses
	if err := readJSON(filepath.Join(cfg.dir, pushAddresses), &kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		trouble = err // new addresses do as well
	}
	at := func(kept *string, lacking string, candidates ...string) net.Listener {
		l, err := listenFirst(ctx, waiting, *kept, candidates...)
		if l == nil {
			trouble = errors.Join(trouble, fmt.Errorf("%s: %w", lacking, err))
			return nil
		}
		trouble = errors.Join(trouble, err)
		*kept = l.Addr().String()
		return l
	}
	if cfg.pushAddress != "" {
		push = at(&kept.Push, "metrics can be pushed over the socket only", cfg.pushAddress)
	}
	if cfg.katibAddress != "" {
		katib = at(&kept.Katib, "report_metrics is not served", katibCandidates(cfg)...)
	}
	return push, katib, errors.Join(trouble, writeJSON(filepath.Join(cfg.dir, pushAddresses), kept))
}

// listenFirst listens at the first address that can be had. One that was kept comes
// first, and is tried until waiting ends: programs know it, and another
// connection may have its port for a moment. Where another is taken for it, the
// error says so.
func listenFirst(ctx, waiting context.Context, kept string, candidates ...string) (net.Listener, error) {
	listen := func(address string) (net.Listener, error) { return new(net.ListenConfig).Listen(ctx, "tcp", address) }
	var lost error
	for kept != "" {
		last := waiting.Err() != nil
		l, err := listen(kept)
		if err == nil {
			return l, nil
		}
		if last || !errors.Is(err, unix.EADDRINUSE) {
			lost = fmt.Errorf("%s cannot be had again, and what programs push there is lost: %w", kept, err)
			break
		}
		select {
		case <-time.After(keptPause):
		case <-waiting.Done():
		}
	}
	var first error
	for _, address := range candidates {
		l, err := listen(address)
		if err == nil {
			return l, lost
		}
		first = cmp.Or(first, err)
	}
	return nil, errors.Join(lost, first)
}

// katibCandidates are addresses for report_metrics, whose port is in the
// programs. Pods that share a network each have an address of their own in
// 127.0.0.0/8.
func katibCandidates(cfg runConfig) []string {
	host, port, err := net.SplitHostPort(cfg.katibAddress)
	if err != nil || host != sharedHost {
		return []string{cfg.katibAddress}
	}
	var list []string
	for i := range uint32(sharedTries) {
		h := fnv.New64a()
		fmt.Fprintf(h, "%s/%d", cfg.podUID, i)
		sum := binary.BigEndian.Uint32(h.Sum(nil))
		// 127.64.0.1 to 127.127.255.254: far from what resolvers use.
		ip := net.IPv4(127, 64|byte(sum>>16)&63, byte(sum>>8), max(1, byte(sum)%255))
		list = append(list, net.JoinHostPort(ip.String(), port))
	}
	return list
}

// tellProgram writes the files from which the program learns where to report.
func tellProgram(cfg runConfig, push push.Config) error {
	env := map[string]string{}
	if push.Guarded != nil {
		env = contract.PushEnv(push.Guarded.Addr().String(), cfg.pushToken, cfg.trial, cfg.dir)
		token := filepath.Join(cfg.dir, contract.FilePushToken)
		if err := os.WriteFile(token, []byte(cfg.pushToken+"\n"), 0o644); err != nil {
			return err
		}
	}
	if err := writeEnv(cfg, env); err != nil {
		return err
	}
	if !strings.HasPrefix(cfg.katibAddress, sharedHost+":") {
		return nil
	}
	hosts, err := os.ReadFile("/etc/hosts")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if push.Katib != nil {
		host, _, err := net.SplitHostPort(push.Katib.Addr().String())
		if err != nil {
			return err
		}
		hosts = fmt.Appendf(hosts, "\n%s %s\n", host, strings.Join(contract.KatibHosts(), " "))
	}
	return os.WriteFile(filepath.Join(cfg.dir, contract.FileHosts), hosts, 0o644)
}

// writeEnv tells "collector env" what to set.
func writeEnv(cfg runConfig, env map[string]string) error {
	if err := os.MkdirAll(cfg.dir, 0o777); err != nil {
		return err
	}
	return writeJSON(filepath.Join(cfg.dir, contract.FileEnv), env)
}

func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the socket path %s has %d bytes; the system allows %d", path, len(path), maxSocketPath)
	}
	// The socket of a collector that was killed is still there. What is no socket
	// is a user's file.
	switch info, err := os.Lstat(path); {
	case err == nil && info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s is there and is no socket: it is left as it is; name another path", path)
	case err == nil:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	// The program may run as another user of the same pod.
	if err := os.Chmod(path, 0o666); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// envCommand becomes the program that it is given, with the addresses of the
// sidecar in the environment, and tells the sidecar of the start. It is needed where
// the sidecar chooses the addresses, and where a container may be started again.
func envCommand(_ context.Context, args []string, _, stderr io.Writer) int {
	dir, argv, err := parseDir("env", args, stderr, nil)
	if err == nil && len(argv) == 0 {
		err = errors.New("no command; write: collector env -- COMMAND [ARGUMENT...]")
	}
	if err != nil {
		return fail(stderr, exitUsage, "env", err)
	}
	var env map[string]string
	if err := readJSON(filepath.Join(dir, contract.FileEnv), &env); err != nil {
		return fail(stderr, exitNotKept, "env", fmt.Errorf("the collector has not said where it listens, so no metric could be pushed: %w", err))
	}
	path, code, err := find(argv[0])
	if err != nil {
		return fail(stderr, code, "env", err)
	}
	if err := announceStart(dir); err != nil {
		fmt.Fprintf(stderr, "collector env: %v\n", err)
	}
	err = unix.Exec(path, argv, mergeEnv(os.Environ(), env))
	return fail(stderr, exitNotExecutable, "env", errors.New(startError(path, err)))
}

// mergeEnv adds what is not set yet.
func mergeEnv(environ []string, add map[string]string) []string {
	set := map[string]bool{}
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		set[name] = true
	}
	// Its token goes to no other server.
	set[contract.EnvTrainerToken] = set[contract.EnvTrainerToken] || set[contract.EnvTrainerURL]
	for name, value := range add {
		if !set[name] {
			environ = append(environ, name+"="+value)
		}
	}
	return environ
}
