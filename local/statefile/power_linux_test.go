package statefile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/local/statefile"
	"github.com/vernier-ml/vernier/local/statefile/disktest"
)

// TestAPowerCutAtEachWrite cuts the power while files are written, new ones and ones
// that take the place of others: as a write begins, before its directory is synced,
// and when it has returned.
func TestAPowerCutAtEachWrite(t *testing.T) {
	disk := disktest.New(t)
	name := func(d *disktest.Disk, file string) string { return filepath.Join(d.Dir, file) }
	var cuts []*disktest.Disk
	end := disk.EachWrite(func(string) { cuts = append(cuts, disk.Cut()) })
	defer end()
	written := map[string]string{} // what each file holds
	for _, one := range []struct{ file, content string }{
		{"a.json", "1"}, {"a.json", strings.Repeat("2", 10_000)}, {"a.json", "3"}, {"new/b.json", "4"}, {"new/b.json", "5"},
	} {
		if err := os.MkdirAll(filepath.Dir(name(disk, one.file)), 0o700); err != nil {
			t.Fatal(err)
		}
		cuts = nil
		if err := statefile.Write(name(disk, one.file), []byte(one.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if len(cuts) != 2 {
			t.Errorf("%s was cut %d times while it was written, want 2", one.file, len(cuts))
		}
		for i, cut := range append(cuts, disk.Cut()) {
			got, err := os.ReadFile(name(cut, one.file))
			before, was := written[one.file]
			switch {
			case err == nil && string(got) == one.content:
			case i < len(cuts) && (os.IsNotExist(err) && !was || err == nil && was && string(got) == before):
			default:
				t.Errorf("cut %d of %d while %s was written: %.20q, %v; want %.20q, or before the last %.20q", i+1, len(cuts)+1, one.file, got, err, one.content, before)
			}
		}
		written[one.file] = one.content
	}
}
