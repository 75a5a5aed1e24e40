package local

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/vernier-ml/vernier/local/statefile/disktest"
)

// mustLast are the files of a start that a power cut may not change: what they
// hold is known to others once the start went on.
var mustLast = []string{homeMarker, resourcesFile, "pki/ca.key", "pki/ca.crt", "pki/service-account.key", "pki/report.key", portsFile}

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

// cutStart is what a disk held at one write of a start, and which files had been
// made to last before it.
type cutStart struct {
	at    string
	disk  *disktest.Disk
	lasts []string
}

// cutsOf starts once, and cuts the power at each write.
func cutsOf(t *testing.T, disk *disktest.Disk, home Home, offer string) (cuts []cutStart) {
	t.Helper()
	written, lasts := map[string][]string{}, []string{} // files by directory, until it is synced
	end := disk.EachWrite(func(path string) {
		name, err := filepath.Rel(string(home), path)
		if err != nil {
			t.Error(err)
		}
		cuts = append(cuts, cutStart{at: name, disk: disk.Cut(), lasts: slices.Clone(lasts)})
		if names, synced := written[name]; synced {
			lasts = append(lasts, names...)
			delete(written, name)
		} else {
			file, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(name), "."), ".tmp-")
			written[filepath.Dir(name)] = append(written[filepath.Dir(name)], filepath.Join(filepath.Dir(name), file))
		}
	})
	defer end()
	if err := startHome(home, offer); err != nil {
		t.Fatal(err)
	}
	return cuts
}

// TestAPowerCutAtEachWriteOfAStart cuts the power at each write of a first start and
// of a second one. The next start must come up, and keep what had been made before.
func TestAPowerCutAtEachWriteOfAStart(t *testing.T) {
	disk := disktest.New(t)
	live := Home(filepath.Join(disk.Dir, "home"))
	var before map[string]string
	for _, offer := range []string{"4", "6"} {
		cuts := cutsOf(t, disk, live, offer)
		after := contents(t, live, mustLast)
		made := map[string]bool{}
		for n, cut := range cuts {
			home := Home(filepath.Join(cut.disk.Dir, "home"))
			if err := startHome(home, offer); err != nil {
				t.Errorf("start %s, cut at write %d of %d, of %s: %v", offer, n+1, len(cuts), cut.at, err)
				continue
			}
			for name, got := range contents(t, home, mustLast) {
				since := name
				if name == "pki/ca.key" {
					since = "pki/ca.crt" // a key without its certificate has signed nothing
				}
				lasts := slices.Contains(cut.lasts, since)
				if lasts {
					made[name] = true
				}
				if old, was := before[name]; got != after[name] && (lasts || was && got != old) {
					t.Errorf("start %s, cut at write %d of %d, of %s: %s is %q, want %q", offer, n+1, len(cuts), cut.at, name, got, after[name])
				}
			}
		}
		if before == nil && len(made) != len(mustLast) {
			t.Errorf("of the files that must last only %v lasted before the last write", made)
		}
		before = after
	}
}
