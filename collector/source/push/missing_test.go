package push

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestAPushSaysWhatIsMissing(t *testing.T) {
	tests := map[string]struct {
		send func(p *pushed)
		want string
	}{
		"nothing was pushed": {func(*pushed) {}, "push: loss, acc was not found: the program pushed nothing"},
		"another name was reported": {func(p *pushed) { p.report(`{"loss": 1, "step": 3, "accuracy": 2}`) },
			"push: acc was not found: did you mean accuracy?; there is loss, accuracy"},
		"all were reported": {func(p *pushed) { p.report(`{"loss": 1, "acc": 3, "accuracy": 2}`) }, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := startPush(t, filepath.Join(t.TempDir(), "journal"), "loss", "acc")
			tc.send(p)
			close(p.drain)
			if !<-p.done {
				t.Fatal("the source did not end")
			}
			if got := strings.Join(p.rec.Errs, "; "); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// What is pushed by way of MLflow, Trainer or report_metrics comes by wants.
func TestUnwantedNamesAreRemembered(t *testing.T) {
	p := &intake{wanted: map[string]bool{"loss": true}}
	for _, name := range []string{"loss", "val_loss", "", "step", "val_loss", strings.Repeat("x", 300)} {
		p.wants(name)
	}
	for i := range 1000 {
		p.wants("n" + strings.Repeat("1", i%150))
	}
	list := p.others.list()
	if len(list) != maxNames || list[0] != "val_loss" {
		t.Errorf("%d names, the first is %q", len(list), list[0])
	}
}
