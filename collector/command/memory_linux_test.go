package command

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Where the kernel gives huge pages to all, the sidecar has none: they would be
// an eighth of its memory.
func TestTheSidecarHasSmallPages(t *testing.T) {
	b := newBench(t)
	s := b.run("--kind=File", "--path="+b.dir+"/metrics.log", "--metric=loss")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(status), "THP_enabled:\t0\n") {
		t.Errorf("huge pages are not off:\n%s", status)
	}
	s.term()
}
