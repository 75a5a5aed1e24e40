// Package servers starts database servers of a test's own: real ones, from the
// machine's packages, as an unprivileged user, in a temporary directory, on a unix
// socket and a free port of loopback. They end with the test.
package servers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Password is that of the servers' user; it has characters that a URL must quote.
const Password = "s3cret:/@?#% pass"

// Server is a server that runs, or may be started again on its data.
type Server struct {
	engine engine
	dir    string
	port   int
	cmd    *exec.Cmd
	ended  chan error
	user   *syscall.Credential
}

// engine is in what servers differ.
type engine struct {
	scheme string
	// programs that must be there, and the Debian package that has them.
	programs []string
	pack     string
	// initialize makes the data directory; serve runs the server in the foreground.
	initialize, serve func(s *Server) []string
	// admin runs a statement as the server's owner, in a database, by the socket.
	admin func(s *Server, database, statement string) []string
	// system is a database that is always there.
	system string
	// setup is a statement for the first start.
	setup string
}

// PostgreSQL starts a server of PostgreSQL.
func PostgreSQL(tb testing.TB) *Server { tb.Helper(); return start(tb, postgres()) }

// MySQL starts a server of MariaDB.
func MySQL(tb testing.TB) *Server { tb.Helper(); return start(tb, mariadb()) }

// start fails the test when the server is not on this machine: what was not tested
// must not look as if it were.
func start(tb testing.TB, e engine) *Server {
	tb.Helper()
	s := &Server{engine: e}
	for _, p := range e.programs {
		if _, err := find(p); err != nil {
			tb.Fatalf("%v: install Debian's package %s (it need not run)", err, e.pack)
		}
	}
	if err := s.prepare(); err != nil {
		tb.Fatalf("prepare a directory for %s: %v", e.scheme, err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("log of %s:\n%s", e.scheme, s.Log())
		}
		if err := errors.Join(s.Kill(), os.RemoveAll(s.dir)); err != nil {
			tb.Errorf("clean up after %s: %v", e.scheme, err)
		}
	})
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute)
	defer cancel()
	if err := s.run(ctx, e.initialize(s)...); err != nil {
		tb.Fatalf("make the data of %s: %v", e.scheme, err)
	}
	if err := s.Start(ctx); err != nil {
		tb.Fatal(err)
	}
	if err := s.Admin(ctx, e.setup); err != nil {
		tb.Fatalf("set up %s: %v", e.scheme, err)
	}
	return s
}

// prepare makes the directory, short enough for a socket's path, and picks the
// user and the port.
func (s *Server) prepare() (err error) {
	if s.dir, err = os.MkdirTemp("", "vernier-db"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "password"), []byte(Password+"\n"), 0o600); err != nil {
		return err
	}
	if s.port, err = freePort(); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return nil
	}
	// The servers refuse to run as root.
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return err
	}
	uid, uidErr := strconv.ParseUint(nobody.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(nobody.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return err
	}
	s.user = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return filepath.WalkDir(s.dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, int(uid), int(gid)))
	})
}

func freePort() (int, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close() //nolint:errcheck // it was only to find the port
	return l.Addr().(*net.TCPAddr).Port, nil
}

// find looks for a program where Debian puts servers, too.
func find(program string) (string, error) {
	patterns := []string{"/usr/lib/postgresql/*/bin/", "/usr/sbin/", "/usr/local/sbin/"}
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern + program)
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return exec.LookPath(program)
}

func (s *Server) command(ctx context.Context, args ...string) (*exec.Cmd, error) {
	path, err := find(args[0])
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, args[1:]...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "LC_ALL=C", "TMPDIR=" + s.dir}
	// The server ends with the test, however that ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.user, Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}

// run runs a command to its end.
func (s *Server) run(ctx context.Context, args ...string) error {
	cmd, err := s.command(ctx, args...)
	if err != nil {
		return err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", args[0], err, out)
	}
	return nil
}

// Start starts the server and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	if err := s.launch(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		last := s.Admin(ctx, "SELECT 1")
		if last == nil {
			return nil
		}
		select {
		case <-s.ended:
			// Processes of a server that was killed may hold its memory for a moment.
			last = s.launch(ctx)
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w\n%s", s.engine.scheme, last, s.Log())
		case <-tick.C:
			continue
		}
		if last != nil {
			return last
		}
	}
}

func (s *Server) launch(ctx context.Context) error {
	cmd, err := s.command(context.WithoutCancel(ctx), s.engine.serve(s)...)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := errors.Join(cmd.Start(), log.Close()); err != nil {
		return err
	}
	s.cmd, s.ended = cmd, make(chan error, 1)
	go func(ended chan<- error) { ended <- cmd.Wait() }(s.ended)
	return nil
}

// Kill kills the server as kill -9 does, and waits for its end.
func (s *Server) Kill() error {
	if s.cmd == nil {
		return nil
	}
	cmd := s.cmd
	s.cmd = nil
	err := cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-s.ended // it was killed: its error says no more
	return err
}

// Log returns the server's log.
func (s *Server) Log() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Dir is the directory of the server, with its socket.
func (s *Server) Dir() string { return s.dir }

func (s *Server) portText() string { return strconv.Itoa(s.port) }

func quoteSQL(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
