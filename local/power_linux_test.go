package local

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-logr/logr"

	"github.com/vernier-ml/vernier/local/statefile/disktest"
)

// mustLast are the files of a start that a power cut may not change: what they
// hold is known to others once the start went on.
var mustLast = []string{homeMarker, resourcesFile, "pki/ca.key", "pki/ca.crt", "pki/service-account.key", "pki/report.key", portsFile}

// writtenIn lists the files of a home in the order in which they were written, with
// their times.
func writtenIn(t *testing.T, home Home) (files []string, written map[string]int64) {
	t.Helper()
	written = map[string]int64{}
	err := filepath.WalkDir(string(home), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(string(home), path)
		files = append(files, name)
		written[name] = info.ModTime().UnixNano()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(written[a], written[b]) })
	return files, written
}

// startHome does what a start writes, without the components.
func startHome(home Home, offer string) error {
	if err := home.SetResources(Resources{CPU: offer}); err != nil {
		return err
	}
	_, err := newSupervisor(Options{Home: home, Log: logr.Discard()})
	return err
}

func contents(t *testing.T, home Home, names []string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(home.path(name))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found[name] = string(data)
	}
	return found
}

// TestAPowerCutAtEachWriteOfAStart builds what a disk holds after each write of a
// first start and of a second one. The next start must come up, and keep what had
// been made before.
func TestAPowerCutAtEachWriteOfAStart(t *testing.T) {
	disk := disktest.New(t)
	live := Home(filepath.Join(disk.Dir, "home"))
	var before, after Home // the disk before and after the start that is cut
	for _, offer := range []string{"4", "6"} {
		if err := startHome(live, offer); err != nil {
			t.Fatal(err)
		}
		before, after = after, Home(filepath.Join(disk.Cut().Dir, "home"))
		order, written := writtenIn(t, live)
		cuts := 0
		kept := contents(t, live, mustLast)
		for n := range len(order) + 1 {
			if n > 0 && n < len(order) && written[order[n-1]] == written[order[n]] {
				continue // which of them came first is not known
			}
			cuts++
			home := Home(filepath.Join(t.TempDir(), "home"))
			put := func(from Home, name string) {
				data, err := os.ReadFile(from.path(name))
				if err != nil {
					return // there was no such file yet
				}
				if err := os.MkdirAll(filepath.Dir(home.path(name)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(home.path(name), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for i, name := range order {
				if i < n {
					put(after, name)
				} else if before != "" {
					put(before, name)
				}
			}
			if n < len(order) { // the next write has begun
				put(live, order[n])
				torn := filepath.Join(filepath.Dir(order[n]), "."+filepath.Base(order[n])+".tmp-1")
				if err := os.Rename(home.path(order[n]), home.path(torn)); err != nil {
					t.Fatal(err)
				}
				if before != "" {
					put(before, order[n])
				}
			}
			if err := startHome(home, offer); err != nil {
				t.Errorf("start %s, cut after write %d of %d: %v", offer, n, len(order), err)
				continue
			}
			for name, got := range contents(t, home, mustLast) {
				since := name
				if name == "pki/ca.key" {
					since = "pki/ca.crt" // a key without its certificate has signed nothing
				}
				if slices.Index(order, since) < n && got != kept[name] {
					t.Errorf("start %s, cut after write %d of %d (%s): %s is %q, want %q", offer, n, len(order), order[max(0, n-1)], name, got, kept[name])
				}
			}
		}
		if cuts < len(mustLast) {
			t.Errorf("start %s was cut at %d writes only", offer, cuts)
		}
	}
}
