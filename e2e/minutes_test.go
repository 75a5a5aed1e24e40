//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// newcomer is a program of someone who has read the README: argparse, and print.
const newcomer = `import argparse, math, time
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--layers", type=int, default=2)
args = parser.parse_args()
for epoch in range(1, 4):
    time.sleep(0.2)
    print(f"epoch={epoch} accuracy={epoch / 3 - abs(math.log10(args.lr) + 2) / 10 - abs(args.layers - 3) / 10}")
`

// TestTheFirstFiveMinutes types what the README says into a terminal, and looks at the
// screen: at 80 columns and at 200, with Ctrl-C once and twice, and going on after each.
func TestTheFirstFiveMinutes(t *testing.T) {
	if clusterConfig() != "" {
		t.Skip("it needs an embedded instance, and this run is against a cluster")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "train.py"), []byte(newcomer), 0o600); err != nil {
		t.Fatal(err)
	}
	record(t, "instance")
	s := openTerminal(t, dir)
	const tune = `vernier run train.py -p 'lr=log(1e-5,1e-1)' -p 'layers=int(1,4)' --maximize accuracy -n 50 -j 4`

	s.types("vernier run train.py --probe")
	s.shows(time.Minute, `--lr +float +0\.01 +log\(`, `--layers +int +2 +int\(1,4\)`, `accuracy +3 `, `vernier run train.py -p`)
	s.ready()

	s.types("clear; " + tune)
	s.shows(3*time.Minute, `(?m)^train +auto +maximize accuracy`, `\d+/50 done, [1-4] running`, `TRIAL +STATE +ACCURACY +LR +LAYERS +TIME`, `train-\d{4} +✓ Succeeded +`, `▶ Running`, `best +accuracy = \S+ +train-\d{4}`)
	s.fits(80)
	s.resizes(200, 50)
	s.shows(time.Minute, `(?s)(train-\d{4} +✓ Succeeded.*){8}`)
	s.presses("C-c")
	s.shows(time.Minute, `no new trials; waiting for the running ones`, `Best trial: train-\d{4}`, `interrupted`)
	s.ready()
	s.types("echo code $?")
	s.shows(time.Minute, `(?m)^code 130`)

	s.resizes(80, 24)
	s.types("clear; " + tune) // goes on
	s.shows(2*time.Minute, `\d+/50 done, [1-4] running`, `▶ Running`)
	s.presses("C-c")
	s.shows(time.Minute, `no new trials`)
	s.presses("C-c")
	s.shows(time.Minute, `left on interrupt|interrupted`)
	s.ready()
	s.types("clear; " + tune)
	s.shows(5*time.Minute, `Best trial: train-\d{4}`, `accuracy \(maximized\) +(0\.9|1\.0)`, `50/50 done`)
	s.ready()

	s.types("clear; vernier get trials train --sort objective | head -5")
	s.shows(time.Minute, `TRIAL +STATE +ACCURACY +LR +LAYERS +TIME`, `✓ Succeeded +(0\.9\d*|1) \*`)
	s.types("clear; vernier best train -o args")
	s.shows(time.Minute, `(?m)^--lr=0\.\d+ --layers=\d`)
	s.types("clear; vernier logs train/best")
	s.shows(time.Minute, `(?m)^epoch=3 accuracy=`)
	s.types("clear; vernier plot train importance")
	s.shows(time.Minute, `train: importance for accuracy`, `(?m)^lr +[\d.]+% █`, `(?m)^layers +[\d.]+% █`)
	s.fits(80)
	s.types("clear; vernier plot train history")
	s.shows(time.Minute, `train: accuracy of 50 trials`, `best so far`)
	s.types("clear; TERM=dumb vernier plot train history")
	s.shows(time.Minute, `train: accuracy of 50 trials`, `\+-----`)
	if screen := s.screen(); strings.ContainsAny(screen, "│└⠤•") {
		t.Errorf("a dumb terminal gets more than ASCII:\n%s", screen)
	}
	s.types("clear; vernier down; echo code $?")
	s.shows(time.Minute, `(?m)^code 0`)
	left := slices.DeleteFunc(processesNaming(t, dir), func(line string) bool { return strings.Contains(line, "tmux -S "+s.socket) })
	if len(left) > 0 {
		t.Errorf("left running:\n%s", strings.Join(left, "\n"))
	}
}

// terminal is a shell in tmux, of a server of its own.
type terminal struct {
	t      *testing.T
	socket string
}

func openTerminal(t *testing.T, dir string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatalf("%v: this test types into a terminal; install Debian's package tmux", err)
	}
	s := &terminal{t: t, socket: filepath.Join(dir, "tmux")}
	path := os.Getenv("VERNIER_BIN_DIR") + ":" + os.Getenv("PATH")
	in := &instance{home: filepath.Join(dir, ".local/state/vernier")}
	// Each by itself and without a condition, so that none is left out where the test,
	// or another of them, has failed.
	t.Cleanup(func() { in.vernier("down") })
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", s.socket, "kill-server").Run() })
	s.tmux("-f", "/dev/null", "-u", "new-session", "-d", "-x", "80", "-y", "24", "-c", dir,
		"env", "-i", "HOME="+dir, "PATH="+path, "TERM=screen-256color", "LANG=C.UTF-8", "PS1=$ ", "bash", "--norc")
	t.Cleanup(func() {
		if t.Failed() {
			in.showLogs(t)
			t.Logf("the screen at the end:\n%s", s.screen())
		}
	})
	return s
}

func (s *terminal) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (s *terminal) screen() string     { return s.tmux("capture-pane", "-p") }
func (s *terminal) presses(key string) { s.tmux("send-keys", key) }
func (s *terminal) resizes(width, height int) {
	s.tmux("resize-window", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height))
}

func (s *terminal) types(line string) {
	s.t.Logf("%s $ %s", time.Now().Format(time.TimeOnly), line)
	s.tmux("send-keys", "-l", line)
	s.presses("Enter")
}

// shows waits until the screen shows all of these at a time.
func (s *terminal) shows(within time.Duration, patterns ...string) {
	s.t.Helper()
	eventually(s.t, within, func(context.Context) error {
		screen := s.screen()
		for _, p := range patterns {
			if !regexp.MustCompile(p).MatchString(screen) {
				return fmt.Errorf("the screen shows\n%s\nand not %s", strings.TrimRight(screen, "\n "), p)
			}
		}
		return nil
	})
}

// ready waits for the prompt.
func (s *terminal) ready() {
	s.t.Helper()
	s.shows(3*time.Minute, `\n\$ *\n*$`)
}

// fits holds that no line but those that were typed was broken.
func (s *terminal) fits(width int) {
	s.t.Helper()
	for line := range strings.Lines(s.tmux("capture-pane", "-p", "-J")) { // joins what was wrapped
		if n := len([]rune(strings.TrimRight(line, " \n"))); n > width && !strings.HasPrefix(line, "$ ") {
			s.t.Errorf("a line of %d characters was wrapped at %d: %s", n, width, line)
		}
	}
}
