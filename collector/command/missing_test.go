package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the service is told in the end is what a trial's condition quotes.
func TestTheNoteNamesWhatIsMissing(t *testing.T) {
	tests := map[string]struct {
		kind string
		text string
		args []string
		want []string
	}{
		"another name on standard error": {kind: "StdOut", text: "val_loss=1 accuracy=2",
			want: []string{"loss was not found: did you mean val_loss?; acc was not found: did you mean accuracy?; there is val_loss, accuracy"}},
		"an additional metric": {kind: "StdOut", text: "loss=1 accuracy=2",
			want: []string{"acc was not found: did you mean accuracy?; there is loss, accuracy"}},
		"nothing": {kind: "StdOut", want: []string{"the program printed nothing on standard output or standard error"}},
		"a table that is read as JSON": {kind: "File", text: "epoch,loss,acc\n1,2,3", args: []string{"--format=JSON"},
			want: []string{"this looks like CSV: use format CSV", "not a JSON object"}},
		"a table with semicolons": {kind: "File", text: "epoch;loss;acc\n1;2;3", args: []string{"--format=CSV"},
			want: []string{"separated by ;: only commas are read"}},
		"all is there": {kind: "StdOut", text: "loss=1 acc=2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			args := append([]string{"--kind=" + tc.kind, "--metric=loss", "--metric=acc"}, tc.args...)
			file := filepath.Join(b.dir, "metrics.log")
			if tc.kind == "File" {
				args = append(args, "--path="+file)
			}
			s := b.start(args...)
			if out, err := exec.CommandContext(t.Context(), program(t), "await", "--dir="+b.dir).CombinedOutput(); err != nil {
				t.Fatalf("await: %v: %s", err, out)
			}
			switch tc.kind {
			case "File":
				if err := os.WriteFile(file, []byte(tc.text+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			case "StdOut":
				script := "true"
				if tc.text != "" {
					script = `echo "$0" >&2`
				}
				if err := b.exec("sh", "-c", script, tc.text).Run(); err != nil {
					t.Fatal(err)
				}
			}
			s.term()
			states, err := b.store.Attempts(t.Context(), trial.UID)
			if err != nil || len(states) != 1 {
				t.Fatalf("%v, %v", states, err)
			}
			if len(tc.want) == 0 && states[0].Note != "" {
				t.Errorf("the note is %q", states[0].Note)
			}
			for _, want := range tc.want {
				if !strings.Contains(states[0].Note, want) {
					t.Errorf("the note is %q, it lacks %q", states[0].Note, want)
				}
			}
		})
	}
}
