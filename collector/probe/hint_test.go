package probe_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/probe"
)

func TestProbeQuotesWhatIsNoNumber(t *testing.T) {
	r := run(t, probe.Config{Path: write(t, "train.log", "epoch=1 loss=tensor(0.5)\n")}, "loss")
	want := []probe.Missing{{Name: "loss", Near: []string{}, Hint: `it is written "loss=tensor(0.5)", which is not a number: print the number alone, as .item() gives it`}}
	if d := cmp.Diff(want, r.Missing); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
