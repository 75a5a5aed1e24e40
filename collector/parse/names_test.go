package parse_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/parse"
)

func TestMissingNamesAreExplained(t *testing.T) {
	const filter = parse.ColonFilter
	tests := map[string]struct {
		format, text   string
		filters        []string
		asked, missing []string
		want           string
	}{
		"another name is like it": {format: "TEXT", text: "val_loss=1 accuracy=2\n", missing: []string{"loss"},
			want: "loss was not found: did you mean val_loss?; there is val_loss, accuracy"},
		"no name is like it": {format: "TEXT", text: "accuracy=2\n", missing: []string{"f1"},
			want: "f1 was not found; there is accuracy"},
		"each missing name is said, and all that there is": {format: "TEXT", text: "loss=3 acc=1\n",
			asked: []string{"loss", "lose", "f1"}, missing: []string{"lose", "f1"},
			want: "lose was not found: did you mean loss?; f1 was not found; there is loss, acc"},
		"what was found without a search is there too": {format: "TEXT", text: "acc=1\n",
			asked: []string{"loss", "f1"}, missing: []string{"f1"},
			want: "f1 was not found; there is acc, loss"},
		"colours are passed over": {format: "TEXT", text: "\x1b[32mloss=0.5\x1b[0m \x1b[1macc\x1b[0m=1\n", missing: []string{"f1"},
			want: "f1 was not found; there is loss, acc"},
		"it is written with a colon": {format: "TEXT", text: "epoch: 1 loss: 3\n", missing: []string{"loss"},
			want: `loss was not found: it is written "loss: ...": print loss=..., or use the filter '` + filter + `'`},
		"one like it is written with a colon": {format: "TEXT", text: "val_loss: 3\n", missing: []string{"val_los"},
			want: `val_los was not found: did you mean val_loss? (it is written "val_loss: ...": print val_loss=..., or use the filter '` + filter + `'); there is val_loss`},
		"it is written as a tensor": {format: "TEXT", text: "epoch=1 loss=tensor(0.5, device='cuda:0') lr=1\n", missing: []string{"loss"},
			want: `loss was not found: it is written "loss=tensor(0.5, device='cuda:0')", which is not a number: print the number alone, as .item() gives it; there is lr`},
		"it is written as a tensor, with a colon": {format: "TEXT", text: "loss: tensor([[0.5, 0.6], [0.7, 0.8], [0.9, 1.0]])\n", missing: []string{"loss"},
			want: `loss was not found: it is written "loss: tensor([[0.5, 0.6]", which is not a number: print the number alone, as .item() gives it`},
		"one like it is written as a list": {format: "LOGFMT", text: "val_loss=[0.5]\n", missing: []string{"val_los"},
			want: `val_los was not found: did you mean val_loss? (it is written "val_loss=[0.5]", which is not a number: print the number alone, as .item() gives it); there is val_loss`},
		"it is a number of numpy 2 in a dictionary": {format: "TEXT", text: "{'f1': np.float64(0.5)}\n", missing: []string{"f1"},
			want: `f1 was not found: it is written "'f1': ...", as Python prints a dictionary: use the filter '` + parse.DictFilter + `'`},
		"it is a tensor where a filter looks": {format: "TEXT", text: "loss: tensor(0.5)\n", filters: []string{`(\w+): (\d+)`}, missing: []string{"loss"},
			want: `loss was not found: it is written "loss: tensor(0.5)", which is not a number: print the number alone, as .item() gives it`},
		"words are no numbers": {format: "TEXT", text: "model=resnet(a) see http://x(y) at 10:(b) loss=f()\n", missing: []string{"loss"},
			want: "loss was not found; there is nothing like it"},
		"a filter does not find it": {format: "TEXT", text: "loss=3 acc: 1\n", filters: []string{`(\w+): (\d)`}, missing: []string{"loss"},
			want: `loss was not found: it is written "loss=...", where the filter does not find it; there is acc`},
		"text that is JSON": {format: "TEXT", text: `{"loss": 1}` + "\n", missing: []string{"loss"},
			want: "loss was not found: the lines are JSON: use format JSON"},
		"JSON that is text": {format: "JSON", text: "loss=1\n", missing: []string{"loss"},
			want: `loss was not found: it is written "loss=...": use format TEXT`},
		"JSON with another key": {format: "JSON", text: `{"val": {"loss": 1}}` + "\n", missing: []string{"loss"},
			want: "loss was not found: did you mean val.loss?; there is val.loss"},
		"JSON over several lines": {format: "JSON", text: "{\n  \"loss\": 1,\n  \"acc\": 2\n}\n", missing: []string{"loss", "f1"},
			want: "loss was not found: the JSON spans several lines: write one object a line; f1 was not found: as above; there is acc"},
		"JSON that is CSV": {format: "JSON", text: "epoch,loss\n1,0.5\n", missing: []string{"loss"},
			want: "loss was not found: this looks like CSV: use format CSV"},
		"text that is CSV": {format: "TEXT", text: "epoch,loss\n1,0.5\n", missing: []string{"loss"},
			want: "loss was not found: this looks like CSV: use format CSV"},
		"text that is a table with semicolons": {format: "TEXT", text: "epoch;loss\n1;0,5\n", missing: []string{"loss"},
			want: "loss was not found: this looks like a table that is separated by ;: only commas are read, as CSV"},
		"prose with commas is no table": {format: "TEXT", text: "first, second\nthen, last\n", missing: []string{"loss"},
			want: "loss was not found; there is nothing like it"},
		"logfmt": {format: "LOGFMT", text: "level=info val_loss=3\n", missing: []string{"loss"},
			want: "loss was not found: did you mean val_loss?; there is val_loss"},
		"logfmt with a time": {format: "LOGFMT", text: "ts=1767225600 time=1 val_loss=3\n", missing: []string{"f1"},
			want: "f1 was not found; there is val_loss"},
		"a dictionary of Python": {format: "TEXT", text: "{'eval_loss': 1.9, 'epoch': 1.0}\n", missing: []string{"eval_loss"},
			want: `eval_loss was not found: it is written "'eval_loss': ...", as Python prints a dictionary: use the filter '` + parse.DictFilter + `'`},
		"one like it is in a dictionary of Python": {format: "TEXT", text: "{'eval_loss': 1.9}\n", missing: []string{"loss"},
			want: `loss was not found: did you mean eval_loss? (it is written "'eval_loss': ...", as Python prints a dictionary: use the filter '` + parse.DictFilter + `'); there is eval_loss`},
		"a sentence that begins like a table": {format: "TEXT", text: "epoch one begins\n12 batches left\n", missing: []string{"loss"},
			want: "loss was not found; there is nothing like it"},
		"a name in Python's logging": {format: "TEXT", text: "INFO:root:lr=1\n", missing: []string{"loss"},
			want: "loss was not found; there is lr"},
		"a name with a colon and an umlaut": {format: "TEXT", text: "val:lüss=1\n", missing: []string{"lüss"},
			want: "lüss was not found: did you mean val:lüss?; there is val:lüss"},
		"nothing is missing": {format: "TEXT", text: "loss=1\n", want: ""},
		"a last line has no end": {format: "TEXT", text: "lr=1", missing: []string{"loss"},
			want: "loss was not found; there is lr"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := parse.NewNames(parse.NamesConfig{Format: tc.format, Filters: tc.filters, MaxBytes: 1 << 20, MaxNames: 20})
			if err != nil {
				t.Fatal(err)
			}
			for i := range len(tc.text) { // in the smallest pieces
				if _, err := s.Write([]byte(tc.text[i : i+1])); err != nil {
					t.Fatal(err)
				}
			}
			s.End()
			if tc.asked == nil {
				tc.asked = tc.missing
			}
			if d := cmp.Diff(tc.want, s.Missing(tc.asked, tc.missing)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTheSearchForNamesIsBounded(t *testing.T) {
	s, err := parse.NewNames(parse.NamesConfig{Format: "TEXT", MaxBytes: 1000, MaxNames: 5})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		fmt.Fprintf(s, "name%d=1\n", i)
		fmt.Fprintf(s, "other%d: 1\n", i)
	}
	if len(s.Names()) != 5 || len(s.Hints()) > 5 {
		t.Errorf("%d names, %d hints", len(s.Names()), len(s.Hints()))
	}
	late, err := parse.NewNames(parse.NamesConfig{Format: "TEXT", MaxBytes: 1000, MaxNames: 5})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(late, strings.Repeat("nothing here\n", 100)+"loss=1\n")
	late.End()
	if len(late.Names()) > 0 {
		t.Errorf("found %v behind the bound", late.Names())
	}
}

func TestNamesWithABadFilterAreRefused(t *testing.T) {
	if _, err := parse.NewNames(parse.NamesConfig{Format: "TEXT", Filters: []string{"(["}}); err == nil {
		t.Error("it was taken")
	}
}

func FuzzNames(f *testing.F) {
	f.Add("TEXT", "loss: 1\nval=2\n")
	f.Add("JSON", "{\n\"a\": 1}\n{\"b\": 2}\n")
	f.Add("LOGFMT", "a;b\n1;2\n")
	f.Fuzz(func(t *testing.T, format, text string) {
		s, err := parse.NewNames(parse.NamesConfig{Format: format, MaxBytes: 4096, MaxNames: 5})
		if err != nil {
			t.Fatal(err)
		}
		parse.CheckMemory(t, len(text), func() {
			if n, err := s.Write([]byte(text)); n != len(text) || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
			s.End()
		})
		if len(s.Names()) > 5 || s.Missing([]string{"loss"}, []string{"loss"}) == "" {
			t.Errorf("%v, %q", s.Names(), s.Missing([]string{"loss"}, []string{"loss"}))
		}
	})
}
