package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/vernier-ml/vernier/collector/contract"
)

func checkpointsCommand(_ context.Context, args []string, _, stderr io.Writer) int {
	flags := flag.NewFlagSet("checkpoints", flag.ContinueOnError)
	flags.SetOutput(stderr)
	to := flags.String("to", "", "directory to make")
	from := flags.String("from", "", "directory of the trial that is continued; none if empty")
	uid := flags.String("uid", "", "UID of the trial; what an earlier trial of this name left is set aside")
	if flags.Parse(args) != nil {
		return exitUsage
	}
	err := noArguments(flags.Args())
	if err == nil && *to == "" {
		err = errors.New("--to is missing")
	}
	if err != nil {
		return fail(stderr, exitUsage, "checkpoints", err)
	}
	if err := makeCheckpoints(*from, *to, *uid); err != nil {
		return fail(stderr, exitFailed, "checkpoints", err)
	}
	return 0
}

// makeCheckpoints makes the directory to with a copy of what from holds, once: a
// trial that is started again finds what it wrote itself. The pods of a trial may do
// this at the same time. The copy gets its name when it is on the disk.
func makeCheckpoints(from, to, uid string) error {
	if err := setAside(to, uid); err != nil {
		return err
	}
	if marked(to) {
		return nil
	}
	if from != "" && !marked(from) {
		return fmt.Errorf("there are no checkpoints of %s, which this trial continues: were they removed from the volume?", filepath.Base(from))
	}
	copied, err := os.MkdirTemp(filepath.Dir(to), "."+filepath.Base(to)+"-*")
	if err != nil {
		return fmt.Errorf("the volume for checkpoints must be writable for the user of the container (see fsGroup): %w", err)
	}
	err = fill(copied, from, uid)
	if err == nil {
		_ = os.Remove(to) // a node may have made an empty one for the mount
		err = os.Rename(copied, to)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(copied))
	}
	if marked(to) { // perhaps by another pod of the trial
		return removeCopies(to)
	}
	return err
}

// setAside renames the directory of another trial that had this name: one that was
// deleted while it was the newest, since the next trial gets its number. A directory
// without a UID is the trial's own.
func setAside(to, uid string) error {
	left, err := os.ReadFile(filepath.Join(to, contract.TrialFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read which trial these checkpoints belong to: %w", err)
	}
	if uid == "" || string(left) == uid || !validUID.Match(left) {
		return nil
	}
	// Another pod of the trial may do the same: then it is gone, or its new name is taken.
	err = os.Rename(to, to+".deleted-"+string(left))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("set the checkpoints of the deleted trial %s aside: %w", filepath.Base(to), err)
	}
	return nil
}

var validUID = regexp.MustCompile(`^[0-9a-zA-Z-]{1,64}$`)

func marked(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, contract.ParentFile))
	return err == nil
}

func fill(dir, from, uid string) error {
	parent := ""
	if from != "" {
		parent = filepath.Base(from)
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			return fmt.Errorf("copy the checkpoints of %s: %w", parent, err)
		}
	}
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, contract.ParentFile), []byte(parent), 0o644),
		os.WriteFile(filepath.Join(dir, contract.TrialFile), []byte(uid), 0o644),
		os.Chmod(dir, 0o755),
	)
	return errors.Join(err, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	}))
}

// removeCopies removes what pods left that were ended while they copied. A copy that
// fills while it is removed belongs to a pod that removes it itself.
func removeCopies(to string) error {
	volume := filepath.Dir(to)
	left, err := fs.Glob(os.DirFS(volume), "."+filepath.Base(to)+"-*")
	for _, dir := range left {
		if e := os.RemoveAll(filepath.Join(volume, dir)); !errors.Is(e, syscall.ENOTEMPTY) {
			err = errors.Join(err, e)
		}
	}
	return err
}
