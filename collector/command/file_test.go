package command

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFileEndToEnd(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(b.dir, "metrics.log")
	s := b.run("--kind=File", "--path="+path, "--format=JSON", "--metric=loss")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "{\"loss\": 0.5, \"step\": 1}\n")
	b.untilPoints(1) // while the program runs
	fmt.Fprintf(f, "{\"loss\": \"nan\", \"step\": 2}\n{\"loss\": 0.25, \"step\": 3}")
	t.Logf("SIGTERM to exit: %v", s.term())
	points := b.points("loss")[0].Points
	if len(points) != 3 || points[0].Value != 0.5 || !math.IsNaN(points[1].Value) || points[2].Value != 0.25 || points[2].Step != 3 {
		t.Errorf("points %+v", points)
	}
}

// A file on a volume of the user's has what an earlier run wrote. The collector
// is killed while the program appends.
func TestWhatAnEarlierRunWroteIsNotReported(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(b.dir, "metrics.log")
	appendTo(t, path, "loss=-99\nloss=-98\n")
	args := []string{"--kind=File", "--path=" + path, "--metric=loss"}
	s := b.run(args...)
	appendTo(t, path, "loss=2\n")
	b.untilPoints(1)
	s.kill(b)
	appendTo(t, path, "loss=1\n")
	s = b.run(args...)
	b.untilPoints(2)
	s.term()
	want(t, "losses", []float64{2, 1}, values(b.points("loss")[0].Points))
	if states := b.attempts(); !strings.Contains(fmt.Sprintf("%+v", states), "its 18 bytes are passed over") {
		t.Errorf("attempts %+v", states)
	}
}

func TestLogfmtEndToEnd(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(b.dir, "metrics.log")
	s := b.run("--kind=File", "--path="+path, "--format=LOGFMT", "--metric=loss")
	if err := os.WriteFile(path, []byte("level=info step=1 loss=\"0.5\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.untilPoints(1)
	t.Logf("SIGTERM to exit: %v", s.term())
	if points := b.points("loss")[0].Points; len(points) != 1 || points[0].Value != 0.5 || points[0].Step != 1 {
		t.Errorf("points %+v", points)
	}
}

// A table is written again with another column while the collector is killed
// and started again.
func TestCSVEndToEnd(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(b.dir, "metrics.csv")
	args := []string{"--kind=File", "--path=" + path, "--format=CSV", "--metric=loss", "--metric=val_loss"}
	s := b.run(args...)
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("step,val_loss\r\n0,0.5\r\n")
	b.untilPoints(1)
	s.kill(b)
	write("loss,step,val_loss\r\n,0,0.5\r\n97.5%,1,\r\n,2,0.25\r\n")
	s = b.run(args...)
	b.untilPoints(3)
	t.Logf("SIGTERM to exit: %v", s.term())
	if points := b.points("loss")[0].Points; len(points) != 1 || points[0].Value != 97.5 || points[0].Text != "97.5%" || points[0].Step != 1 {
		t.Errorf("points of loss %+v", points)
	}
	want(t, "val_loss", []float64{0.5, 0.25}, values(b.points("val_loss")[0].Points))
	if m := b.wantSummary("loss", 1).Metrics[0]; m.Last.Text != "97.5" {
		t.Errorf("the summary says %s", m.Last.Text)
	}
}
