package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector/source"
)

// "collector exec" and "collector run" meet in the shared directory D. Each
// start of exec takes the next free number n:
//
//	D/attempts/<n>/start.json   when it started; there from the beginning
//	D/attempts/<n>/lock         locked while exec lives, however it ends
//	D/attempts/<n>/stream/      the output (file.StreamWriter)
//	D/ready                     made once run can be stopped without loss
//
// The attempt's ID is "<pod UID>/<n>": n is the container's restart count, which
// the downward API does not tell. Where nothing is wrapped, n is 0.
const (
	attemptsDir = "attempts"
	startName   = "start.json"
	lockName    = "lock"
	streamName  = "stream"
	readyName   = "ready"
)

// start is what exec writes before the program begins.
type start struct {
	Started time.Time `json:"started"`
}

// exit is how a program ended.
type exit struct {
	// Code is the exit code, 128 plus the signal's number when it was killed.
	Code int
	// Error says why the program could not be started.
	Error string
}

func attemptDir(dir string, n int) string {
	return filepath.Join(dir, attemptsDir, strconv.Itoa(n))
}

// newAttempt takes the next number in dir, with a start after those of all earlier
// attempts. The lock is held until the returned
// file is closed or the process ends.
func newAttempt(dir string, s start) (attempt string, lock *os.File, err error) {
	parent := filepath.Join(dir, attemptsDir)
	if err := makeShared(parent); err != nil {
		return "", nil, err
	}
	s.Started = afterEarlier(parent, s.Started)
	temp, err := os.MkdirTemp(parent, ".new-*")
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(temp)
		}
	}()
	if lock, err = lockAttempt(temp, s); err != nil {
		return "", nil, err
	}
	for n := 0; ; n++ {
		// A directory that holds files is not replaced.
		attempt = attemptDir(dir, n)
		err = os.Rename(temp, attempt)
		switch {
		case err == nil:
			return attempt, lock, nil
		case !errors.Is(err, fs.ErrExist) && !errors.Is(err, unix.ENOTEMPTY):
			return "", nil, errors.Join(err, lock.Close())
		}
	}
}

// outputsOf are the files of the output of all attempts. The path of dir, which may be
// a user's, is no pattern.
func outputsOf(dir string) ([]string, error) {
	found, err := fs.Glob(os.DirFS(dir), path.Join(attemptsDir, "*", streamName, "*"))
	for i, file := range found {
		found[i] = filepath.Join(dir, file)
	}
	return found, err
}

// makeRoom removes the oldest output of earlier attempts, read or not, until it
// takes no more than limit bytes. The sidecar notices, and notes it.
func makeRoom(dir string, limit int64) error {
	outputs, err := outputsOf(dir)
	if err != nil {
		return err
	}
	number := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // we named it
		return n
	}
	slices.SortFunc(outputs, func(a, b string) int { return cmp.Or(number(b)-number(a), strings.Compare(b, a)) })
	kept := int64(0)
	for _, path := range outputs { // the newest first
		info, err := os.Stat(path)
		if err != nil {
			continue // the sidecar removed it
		}
		if kept += info.Size(); kept > limit {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// afterEarlier moves a start behind those of the earlier attempts: their order says
// which one counts, and the node's clock may have been set back. What cannot be read
// is passed over: the program must start.
func afterEarlier(parent string, started time.Time) time.Time {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return started
	}
	for _, e := range entries {
		var earlier start
		if _, err := strconv.Atoi(e.Name()); err != nil || readJSON(filepath.Join(parent, e.Name(), startName), &earlier) != nil {
			continue
		}
		if !started.After(earlier.Started) {
			started = earlier.Started.Add(time.Nanosecond)
		}
	}
	return started
}

func lockAttempt(dir string, s start) (*os.File, error) {
	// The sidecar may run as another user of the same pod.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	if err := writeJSON(filepath.Join(dir, startName), s); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", lock.Name(), errors.Join(err, lock.Close()))
	}
	return lock, nil
}

// makeShared makes a directory in which every user of the pod may make files.
func makeShared(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o777); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err // another user's directory is as that user made it
	}
	return nil
}

// awaitEnd returns when no process holds the lock of an attempt. It cannot be
// interrupted.
func awaitEnd(attempt string) error {
	lock, err := os.Open(filepath.Join(attempt, lockName))
	if err != nil {
		return err
	}
	defer lock.Close()
	for {
		if err = unix.Flock(int(lock.Fd()), unix.LOCK_SH); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// writeJSON writes a file that the pod's other users may read.
func writeJSON(path string, v any) error { return source.WriteJSON(path, v, 0o644) }

// maxJSON bounds what readJSON reads, in bytes.
const maxJSON = 1 << 20

// readJSON reads a small file.
func readJSON(path string, v any) error { return source.ReadJSON(path, maxJSON, v) }

// sayReady tells exec that a SIGTERM from now on is handled, for as long as the file
// stays open: the lock on it ends with the process that holds it.
func sayReady(dir string) (held *os.File, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	held, err = os.OpenFile(filepath.Join(dir, readyName), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", held.Name(), err), held.Close())
	}
	return held, nil
}

// isReady says whether a process that said so still lives.
func isReady(dir string) bool {
	f, err := os.Open(filepath.Join(dir, readyName))
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

const (
	// lateWait is how long exec waits, once its program has ended, for a sidecar that
	// has not come up, or was killed and is not started again yet: once the pod's
	// containers have ended it is stopped, or never started again, and what it has not
	// read is lost.
	lateWait = 20 * time.Second
	// hookWait is how long "await" waits, as the hook after the sidecar's start: when
	// it fails, the sidecar is started again.
	hookWait = time.Minute
	// readyWait is how long exec waits when its program was told to end.
	readyWait = 2 * time.Second
	readyPoll = 2 * time.Millisecond
)

// awaitReady returns true when run is ready, false when it is not after a while or
// when a signal says to end.
func awaitReady(dir string, wait time.Duration, signals <-chan os.Signal) bool {
	look := time.NewTicker(readyPoll) // another process makes the file; there is nothing to wait on
	defer look.Stop()
	for end, over := time.Now().Add(wait), false; ; {
		over = over || time.Now().After(end) // before the look: this process may have been late itself
		if ready := isReady(dir); ready || over {
			return ready
		}
		select {
		case <-look.C:
		case s := <-signals:
			over = tellsToEnd(s)
		}
	}
}

// awaitCommand is the hook after the sidecar's start. Of the kinds that wrap nothing,
// only this keeps a program that ends at once from ending before the sidecar
// listens; SIGTERM would then end the sidecar with nothing read.
func awaitCommand(_ context.Context, args []string, _, stderr io.Writer) int {
	var wait time.Duration
	dir, rest, err := parseDir("await", args, stderr, func(f *flag.FlagSet) {
		f.DurationVar(&wait, "wait", hookWait, "`time` to wait")
	})
	if err := cmp.Or(err, noArguments(rest)); err != nil {
		return fail(stderr, exitUsage, "await", err)
	}
	if !awaitReady(dir, wait, nil) {
		return fail(stderr, exitFailed, "await", fmt.Errorf("the collector in %s was not ready within %v", dir, wait))
	}
	return 0
}
