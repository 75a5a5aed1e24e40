package probe_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/probe"
)

// TestProbeReadsANamedFileAlone holds that a file that is named is read, and
// nothing that lies beside it.
func TestProbeReadsANamedFileAlone(t *testing.T) {
	wandb := func(metric string) brief {
		return brief{Kind: "File", Format: "WANDB", Found: []string{metric + ": 2, 0.5 to 0.75, in [0.5, 0.75], steps 0 to 1"}, Seen: []string{}}
	}
	events := func(metric string) brief {
		return brief{Kind: "TensorFlowEvent", Found: []string{metric + ": 2, 3 to 2, in [2, 3], steps 1 to 2, 1s"}, Seen: []string{}}
	}
	tests := map[string]struct {
		file string
		cfg  probe.Config
		want brief
	}{
		"a file of W&B":                        {file: "run.wandb", want: wandb("val.acc")},
		"a file of W&B, by its content":        {file: "log.bin", want: wandb("other.acc")},
		"a file of W&B, by the format":         {file: "run.wandb", cfg: probe.Config{Format: "WANDB"}, want: wandb("val.acc")},
		"a file of W&B, by a link":             {file: "link", want: wandb("val.acc")},
		"an event file":                        {file: "events.out.tfevents.1", want: events("loss")},
		"an event file beside another":         {file: "events.out.tfevents.2", want: events("acc")},
		"an event file, by its content":        {file: "kept.bin", want: events("kept")},
		"an event file with W&B's name":        {file: "odd.wandb", want: events("odd")},
		"an event file that is empty":          {file: "tfevents.empty", want: brief{Kind: "TensorFlowEvent", Seen: []string{}}},
		"a file in a directory of other files": {file: "train.log", want: brief{Kind: "File", Format: "TEXT", Found: []string{"loss: 1, 7 to 7, in [7, 7]"}, Seen: []string{}}},
	}
	dir := t.TempDir()
	sizes := map[string]int{}
	for name, b := range map[string][]byte{
		"run.wandb": wandbFile("val.acc", 0.5, 0.75), "log.bin": wandbFile("other.acc", 0.5, 0.75), "sub/more.wandb": wandbFile("deep", 1),
		"events.out.tfevents.1": eventFile(1e9, "loss", 1, 3, 2), "events.out.tfevents.2": eventFile(1e9, "acc", 1, 3, 2),
		"kept.bin": eventFile(1e9, "kept", 1, 3, 2), "odd.wandb": eventFile(1e9, "odd", 1, 3, 2), "tfevents.empty": nil,
		"sub/events.out.tfevents.3": eventFile(1e9, "deep", 1, 3, 2), "train.log": []byte("loss=7\n"),
	} {
		put(t, filepath.Join(dir, name), b)
		sizes[name] = len(b)
	}
	if err := os.Symlink("run.wandb", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	sizes["link"] = sizes["run.wandb"]
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.cfg.Path = filepath.Join(dir, tc.file)
			r := run(t, tc.cfg)
			if d := cmp.Diff(tc.want, inShort(r)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if len(r.PassedOver) > 0 || r.Bytes != int64(sizes[tc.file]) {
				t.Errorf("%d bytes of %d, passed over %v", r.Bytes, sizes[tc.file], r.PassedOver)
			}
		})
	}
}
