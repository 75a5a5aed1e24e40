package command

import (
	"os"
	"path/filepath"
	"testing"
)

// What means something in a pattern means nothing in the path of a shared directory or
// of a volume, which may lie in a home of any name.
func TestDirectoriesMayHaveAnyName(t *testing.T) {
	for _, name := range []string{"plain", "run[1]", "run[", `back\slash`, "a*b"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name)
			for n := range 3 {
				output := filepath.Join(attemptDir(dir, n), streamName, "0")
				if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(output, make([]byte, 100), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := makeRoom(dir, 250); err != nil {
				t.Error(err)
			}
			if got := spoolBytes(dir); got != 200 {
				t.Errorf("%d bytes are kept, want 200", got)
			}
			left := filepath.Join(dir, ".trial-0001-123")
			if err := os.Mkdir(left, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := removeCopies(filepath.Join(dir, "trial-0001")); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(left); err == nil {
				t.Error("what a pod left is still there")
			}
		})
	}
}
