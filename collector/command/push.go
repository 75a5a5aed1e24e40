package command

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
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

	"github.com/vernier-ml/vernier/collector"
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

// preparePush listens before the program is started, so that it never finds nobody
// there, and keeps what is pushed on disk until the service can be asked.
func preparePush(ctx context.Context, j job) (opener, error) {
	if err := os.MkdirAll(j.cfg.dir, 0o777); err != nil {
		return nil, err
	}
	path := j.cfg.path
	if path == "" {
		path = filepath.Join(j.cfg.dir, pushSocket)
	}
	socket, err := listenUnix(ctx, path)
	if err != nil {
		return nil, err
	}
	listeners := []net.Listener{socket}
	abandon := func(err error) (opener, error) {
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
		return nil, err
	}
	cfg := push.Config{
		Trusted: []net.Listener{socket}, Token: j.cfg.pushToken, Trial: j.cfg.trial, Seed: j.cfg.podUID,
		Journal: filepath.Join(j.cfg.dir, pushJournal), Artifacts: filepath.Join(j.cfg.dir, pushArtifacts),
		Metrics: j.cfg.metrics, Drain: j.drain,
	}
	// A port that is taken must not cost the trial its other ways to report.
	cfg.Guarded, cfg.Katib, cfg.Trouble = listenTCP(ctx, j.cfg, j.drain)
	listeners = append(append(listeners, cfg.Guarded...), cfg.Katib...)
	if err := makeShared(cfg.Artifacts); err != nil {
		return abandon(err)
	}
	push, err := push.New(cfg)
	if err != nil {
		return abandon(err)
	}
	if err := tellProgram(j.cfg, cfg); err != nil {
		return abandon(err)
	}
	go push.Serve(ctx)
	j.journal(push.End)
	return func(map[string]int64) ([]collector.Source, error) {
		return []collector.Source{&sessions{points: j.split(push), next: j.next}}, nil
	}, nil
}

// listenTCP listens where the flags say. trouble says what could not be had. Once
// drain is closed no program is left to push, and nothing is waited for.
func listenTCP(ctx context.Context, cfg runConfig, drain <-chan struct{}) (push, katib []net.Listener, trouble error) {
	waiting, cancel := context.WithTimeout(ctx, keptPatience)
	defer cancel()
	go func() {
		select {
		case <-drain:
			cancel()
		case <-waiting.Done():
		}
	}()
	var kept addresses
	if err := readJSON(filepath.Join(cfg.dir, pushAddresses), &kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		trouble = err // new addresses do as well
	}
	if cfg.pushAddress != "" {
		l, err := listenFirst(ctx, waiting, kept.Push, cfg.pushAddress)
		if l == nil {
			err = fmt.Errorf("metrics can be pushed over the socket only: %w", err)
		} else {
			push, kept.Push = []net.Listener{l}, l.Addr().String()
		}
		trouble = errors.Join(trouble, err)
	}
	if cfg.katibAddress != "" {
		l, err := listenFirst(ctx, waiting, kept.Katib, katibCandidates(cfg)...)
		if l == nil {
			err = fmt.Errorf("report_metrics is not served: %w", err)
		} else {
			katib, kept.Katib = []net.Listener{l}, l.Addr().String()
		}
		trouble = errors.Join(trouble, err)
	}
	return push, katib, errors.Join(trouble, writeJSON(filepath.Join(cfg.dir, pushAddresses), kept))
}

// listenFirst listens at the first address that can be had. One that was kept comes
// first, and is tried until waiting ends: programs know it, and a connection of
// somebody else may have its port for a moment. Where another is taken for it, the
// error says so.
func listenFirst(ctx, waiting context.Context, kept string, candidates ...string) (net.Listener, error) {
	var lost error
	if kept != "" {
		l, err := listenAgain(ctx, waiting, kept)
		if err == nil {
			return l, nil
		}
		lost = fmt.Errorf("%s cannot be had again, and what programs push there is lost: %w", kept, err)
	}
	var first error
	for _, address := range candidates {
		l, err := listen(ctx, address)
		if err == nil {
			return l, lost
		}
		if first == nil {
			first = err
		}
	}
	return nil, errors.Join(lost, first)
}

// listenAgain tries while an address is taken, until waiting ends.
func listenAgain(ctx, waiting context.Context, address string) (net.Listener, error) {
	for {
		last := waiting.Err() != nil
		l, err := listen(ctx, address)
		if err == nil || last || !errors.Is(err, unix.EADDRINUSE) {
			return l, err
		}
		select {
		case <-time.After(keptPause):
		case <-waiting.Done():
		}
	}
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", address)
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
	if len(push.Guarded) > 0 {
		env = contract.PushEnv(push.Guarded[0].Addr().String(), cfg.pushToken, cfg.trial, cfg.dir)
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
	if len(push.Katib) > 0 {
		host, _, err := net.SplitHostPort(push.Katib[0].Addr().String())
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
	// is somebody's file.
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
	flags := flag.NewFlagSet("env", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String(contract.FlagDir, contract.DefaultDir, "directory shared with the sidecar")
	if err := flags.Parse(args); err != nil {
		return fail(stderr, exitUsage, "env", errSaid)
	}
	if flags.NArg() == 0 {
		return fail(stderr, exitUsage, "env", errors.New("no command; write: collector env -- COMMAND [ARGUMENT...]"))
	}
	var env map[string]string
	if err := readJSON(filepath.Join(*dir, contract.FileEnv), &env); err != nil {
		return fail(stderr, exitNotKept, "env", fmt.Errorf("the collector has not said where it listens, so no metric could be pushed: %w", err))
	}
	path, code, err := find(flags.Arg(0))
	if err != nil {
		return fail(stderr, code, "env", err)
	}
	if err := announceStart(*dir); err != nil {
		fmt.Fprintf(stderr, "collector env: %v\n", err)
	}
	err = unix.Exec(path, flags.Args(), mergeEnv(os.Environ(), env))
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
