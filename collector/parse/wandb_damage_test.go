package parse_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWandbGoesOnAnywhere truncates a log at every byte: what is there is read,
// and the rest when it has come.
func TestWandbGoesOnAnywhere(t *testing.T) {
	file, want := manyRecords(1, 40)
	w := wandbReader(t, "loss")
	rng := rand.New(rand.NewPCG(2, 2))
	for cut := 0; cut <= len(file); cut += 1 + rng.IntN(1+cut/60) {
		first, offset := readWandb(t, w, file[:cut], 0, false)
		second, _ := readWandb(t, w, file, offset, false)
		if len(first.Errors)+len(second.Errors) > 0 {
			t.Fatalf("cut at %d: errors %q %q", cut, first.Errors, second.Errors)
		}
		if diff := cmp.Diff(want, append(first.Points, second.Points...)); diff != "" {
			t.Fatalf("cut at %d, went on at %d (-want +got)\n%s", cut, offset, diff)
		}
	}
}

// TestWandbTornBlocks looks at a block whose pages arrive in any order: nothing
// is given up before the writer has left the block.
func TestWandbTornBlocks(t *testing.T) {
	log := newWandbLog()
	var want []string
	for i := range 100 {
		log.record(logged(int64(i), int64(i), "loss", fmt.Sprint(i)))
		want = append(want, fmt.Sprintf("loss=%d at %d", i, i))
	}
	w := wandbReader(t, "loss")
	for hole := 100; hole+500 < len(log.b); hole += 97 {
		torn := bytes.Clone(log.b)
		clear(torn[hole : hole+200])
		first, offset := readWandb(t, w, torn, 0, false)
		if len(first.Errors) > 0 {
			t.Fatalf("a hole at %d was given up: %q", hole, first.Errors)
		}
		second, _ := readWandb(t, w, log.b, offset, false)
		if diff := cmp.Diff(want, append(first.Points, second.Points...)); diff != "" {
			t.Fatalf("hole at %d (-want +got)\n%s", hole, diff)
		}
	}
}

func TestWandbDamage(t *testing.T) {
	file, want := manyRecords(3, 60)
	blocks := len(file) / wandbBlock
	tests := map[string]func(b []byte){
		"a flipped bit":          func(b []byte) { b[0x40] ^= 1 },
		"a hole":                 func(b []byte) { clear(b[100:300]) },
		"an unknown type":        func(b []byte) { log := wandbLog{}; log.fragment(9, make([]byte, 20)); copy(b[7:], log.b) },
		"a length over the end":  func(b []byte) { b[11], b[12] = 0xff, 0xff },
		"a block full of zeros":  func(b []byte) { clear(b[7:]) },
		"a block full of noise":  func(b []byte) { _, _ = rand.NewChaCha8([32]byte{1}).Read(b[7:]) }, // never fails
		"a beginning without an": func(b []byte) { log := wandbLog{}; log.fragment(2, nil); log.fragment(2, nil); copy(b[7:], log.b) },
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			broken := bytes.Clone(file)
			damage(broken[:wandbBlock])
			got, end := readWandb(t, wandbReader(t, "loss"), broken, 0, false)
			if len(got.Errors) == 0 && name != "a block full of zeros" {
				t.Error("the damage was not said")
			}
			if end != int64(len(file)) {
				t.Errorf("read up to %d of %d", end, len(file))
			}
			// Records of other blocks are read all the same.
			tail := want[len(want)-len(want)*(blocks-4)/blocks:]
			if len(got.Points) < len(tail) {
				t.Fatalf("%d of %d points are left", len(got.Points), len(want))
			}
			if diff := cmp.Diff(tail, got.Points[len(got.Points)-len(tail):]); diff != "" {
				t.Errorf("the last points (-want +got)\n%s", diff)
			}
		})
	}
}

func TestWandbDamageAtTheEnd(t *testing.T) {
	log := newWandbLog()
	log.record(logged(1, 1, "loss", "1"))
	log.record(logged(2, 2, "loss", "2"))
	log.b[len(log.b)-1] ^= 1
	w := wandbReader(t, "loss")
	got, at := readWandb(t, w, log.b, 0, false)
	if diff := cmp.Diff(wandbRead{Points: []string{"loss=1 at 1"}}, got); diff != "" {
		t.Errorf("while the writer may go on (-want +got)\n%s", diff)
	}
	got, _ = readWandb(t, w, log.b, at, true)
	if len(got.Errors) != 1 || !strings.Contains(got.Errors[0], "checksum") {
		t.Errorf("when the writer has ended: %+v", got)
	}
}
