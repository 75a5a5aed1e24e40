package parse_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/parse"
)

// FuzzWandb holds that no file makes the reader fail or stand still, and that a
// file that grows gives what the whole file gives.
func FuzzWandb(f *testing.F) {
	small := newWandbLog()
	small.record(logged(1, 1, "loss", "1", "val/acc", `"0.5"`))
	small.record(wandbRecord(2, 7, []byte("system")))
	small.record(logged(3, 2, "loss", "NaN"))
	f.Add(small.b, 20)
	f.Add(small.b[:len(small.b)-3], 9)
	f.Add(append(bytes.Clone(small.b), make([]byte, 40)...), 60)
	f.Add([]byte(":W&B\xe1\xbe\x00\x00\x00\x00\x00\x00\x00\x00"), 7)
	f.Fuzz(func(t *testing.T, file []byte, cut int) {
		w := parse.NewAnyWandb()
		cut = min(max(cut, 0), len(file))
		var whole wandbRead
		parse.CheckMemory(t, len(file), func() { whole, _ = readWandb(t, w, file, 0, false) })
		parse.CheckHeld(t, w)
		first, offset := readWandb(t, w, file[:cut], 0, false)
		second, _ := readWandb(t, w, file, offset, false)
		if len(first.Errors) > 0 && !bytes.HasPrefix(file, []byte(":W&B\xe1\xbe\x00")) {
			return
		}
		if diff := cmp.Diff(whole.Points, append(first.Points, second.Points...)); diff != "" {
			t.Errorf("cut at %d (-whole +parts)\n%s", cut, diff)
		}
		readWandb(t, w, file, 0, true)
	})
}
