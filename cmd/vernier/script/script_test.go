package script

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func space(low, high, step string, d v1beta1.Distribution) v1beta1.FeasibleSpace {
	return v1beta1.FeasibleSpace{Min: low, Max: high, Step: step, Distribution: d}
}

func TestParseParameter(t *testing.T) {
	tests := map[string]v1beta1.ParameterSpec{
		"lr=log(1e-5,1e-1)":         {Name: "lr", ParameterType: "double", FeasibleSpace: space("1e-5", "1e-1", "", "logUniform")},
		"x=uniform(-1, 2.5)":        {Name: "x", ParameterType: "double", FeasibleSpace: space("-1", "2.5", "", "")},
		"x=uniform(0,1,0.25)":       {Name: "x", ParameterType: "double", FeasibleSpace: space("0", "1", "0.25", "")},
		"x=uniform(0,1,step=0.25)":  {Name: "x", ParameterType: "double", FeasibleSpace: space("0", "1", "0.25", "")},
		"x=normal(0,1)":             {Name: "x", ParameterType: "double", FeasibleSpace: space("0", "1", "", "normal")},
		"layers=int(1,4)":           {Name: "layers", ParameterType: "int", FeasibleSpace: space("1", "4", "", "")},
		"width=logint(8,512)":       {Name: "width", ParameterType: "int", FeasibleSpace: space("8", "512", "", "logUniform")},
		"batch=choice(16,32,64)":    {Name: "batch", ParameterType: "discrete", FeasibleSpace: v1beta1.FeasibleSpace{List: []string{"16", "32", "64"}}},
		`opt=choice(sgd, "a, (b)")`: {Name: "opt", ParameterType: "categorical", FeasibleSpace: v1beta1.FeasibleSpace{List: []string{"sgd", "a, (b)"}}},
		"model.width=int(1,2)":      {Name: "model.width", ParameterType: "int", FeasibleSpace: space("1", "2", "", "")},
		"lr=log(1e-5,1e-1)~1e-3": {Name: "lr", ParameterType: "double", FeasibleSpace: v1beta1.FeasibleSpace{
			Min: "1e-5", Max: "1e-1", Distribution: "logUniform", Prior: &v1beta1.ParameterPrior{Value: "1e-3"}}},
		"n=int(1,9)~3/0.2 if opt=a": {Name: "n", ParameterType: "int", When: &v1beta1.ParameterCondition{Parameter: "opt", In: []string{"a"}},
			FeasibleSpace: v1beta1.FeasibleSpace{Min: "1", Max: "9", Prior: &v1beta1.ParameterPrior{Value: "3", Spread: "0.2"}}},
		"opt=choice(sgd,adam)~1:3": {Name: "opt", ParameterType: "categorical", FeasibleSpace: v1beta1.FeasibleSpace{
			List: []string{"sgd", "adam"}, Prior: &v1beta1.ParameterPrior{Weights: []string{"1", "3"}}}},
		`m=choice(google/vit,facebook/deit)~google/vit`: {Name: "m", ParameterType: "categorical", FeasibleSpace: v1beta1.FeasibleSpace{
			List: []string{"google/vit", "facebook/deit"}, Prior: &v1beta1.ParameterPrior{Value: "google/vit"}}},
		`m=choice(http://x,http://y)~http://x`: {Name: "m", ParameterType: "categorical", FeasibleSpace: v1beta1.FeasibleSpace{
			List: []string{"http://x", "http://y"}, Prior: &v1beta1.ParameterPrior{Value: "http://x"}}},
		`m=choice(1:2,2:1)~2:1 if opt=a`: {Name: "m", ParameterType: "categorical", FeasibleSpace: v1beta1.FeasibleSpace{
			List: []string{"1:2", "2:1"}, Prior: &v1beta1.ParameterPrior{Value: "2:1"}}, When: &v1beta1.ParameterCondition{Parameter: "opt", In: []string{"a"}}},
		`m=choice(a/b,c/d)~1:3`: {Name: "m", ParameterType: "categorical", FeasibleSpace: v1beta1.FeasibleSpace{
			List: []string{"a/b", "c/d"}, Prior: &v1beta1.ParameterPrior{Weights: []string{"1", "3"}}}},
		`m=choice(a/b,c/d)~a/c`: {Name: "m", ParameterType: "categorical", FeasibleSpace: v1beta1.FeasibleSpace{
			List: []string{"a/b", "c/d"}, Prior: &v1beta1.ParameterPrior{Value: "a/c"}}},
		`m=choice(1,2,4)~2/0.2`: {Name: "m", ParameterType: "discrete", FeasibleSpace: v1beta1.FeasibleSpace{
			List: []string{"1", "2", "4"}, Prior: &v1beta1.ParameterPrior{Value: "2", Spread: "0.2"}}},
		`m=choice(big model,"f(x)~1, 2")~"big model" if opt=a`: {Name: "m", ParameterType: "categorical", FeasibleSpace: v1beta1.FeasibleSpace{
			List: []string{"big model", "f(x)~1, 2"}, Prior: &v1beta1.ParameterPrior{Value: "big model"}}, When: &v1beta1.ParameterCondition{Parameter: "opt", In: []string{"a"}}},
		`m=choice(big model,"f(x)~1, 2")~"f(x)~1, 2"`: {Name: "m", ParameterType: "categorical", FeasibleSpace: v1beta1.FeasibleSpace{
			List: []string{"big model", "f(x)~1, 2"}, Prior: &v1beta1.ParameterPrior{Value: "f(x)~1, 2"}}},
		"m=uniform(0,1) if opt=a| b": {Name: "m", ParameterType: "double", FeasibleSpace: space("0", "1", "", ""), When: &v1beta1.ParameterCondition{Parameter: "opt", In: []string{"a", "b"}}},
	}
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			got, err := ParseParameter(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again, err := ParseParameter(Form(got))
			if diff := cmp.Diff(want, again); err != nil || diff != "" {
				t.Errorf("%s is read differently: %v (-want +got):\n%s", Form(got), err, diff)
			}
		})
	}
}

// Of 0.1 and 0.3 the difference is a little less than 0.2, as computers count.
func TestAStepAsLongAsTheRange(t *testing.T) {
	for _, text := range []string{"x=uniform(0.1,0.3,0.2)", "x=uniform(1.1,1.3,0.2)", "n=int(8,64,56)"} {
		if _, err := ParseParameter(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestWrongParametersSayWhatToWrite(t *testing.T) {
	tests := map[string]string{
		"lr":                      "write lr=FORM",
		"=log(1,2)":               "no name of a parameter",
		"lr=0.1":                  "belongs after --",
		"lr=log(1,2":              "is no range",
		"lr=log(1)":               "log takes the smallest and the largest value",
		"lr=log(1,2,3,4)":         "log takes",
		"n=int(8,64,128,256)":     "for these values alone, choice(8,64,128,256)",
		"n=int(8,64,100)":         "the third number is the step, and 100 is more than from 8 to 64: write int(8,64) for all values between, a smaller step, or choice(8,64,100) for these values alone",
		"x=uniform(0,1,step=2)":   "and 2 is more than from 0 to 1",
		"lr=logg(1,2)":            `no form "logg"`,
		"lr=log(a,2)":             `"a" is not a number`,
		"lr=log(1,inf)":           `"inf" is not a number`,
		"o=choice(a,,b)":          "value 2 is empty",
		"o=choice(a,\"b)":         "double quotes",
		"m=uniform(0,1) if opt":   "if OTHER=VALUE",
		"m=uniform(0,1) when o=a": "is no range",
	}
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			if _, err := ParseParameter(text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

func FuzzParseParameter(f *testing.F) {
	f.Add("lr=log(1e-5,1e-1)")
	f.Add(`m=choice(a,"b,c") if opt=a|b`)
	f.Add(`m=choice(a/b,"b c")~"b c" if opt=a|b`)
	f.Add(`m=choice(a,b)~1:2`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseParameter(text)
		if err != nil {
			return
		}
		again, err := ParseParameter(Form(p))
		if err != nil {
			t.Fatalf("%q became %q, which is not read: %v", text, Form(p), err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Errorf("%q became %q (-first +second):\n%s", text, Form(p), diff)
		}
	})
}

func TestParseHelp(t *testing.T) {
	tests := map[string]struct {
		text string
		want []Flag
	}{
		"argparse": {"usage: train.py [-h] [--lr LR] [--opt {sgd,adam}]\n\noptions:\n  -h, --help            show this help message and exit\n  --lr LR               learning rate (default: 0.01)\n  -b SIZE, --batch SIZE\n                        rows (default: 32)\n  --opt {sgd,adam}\n", []Flag{
			{Option: "--lr", Kind: "float", Default: "0.01"}, {Option: "--batch", Kind: "int", Default: "32"}, {Option: "--opt", Choices: []string{"sgd", "adam"}},
		}},
		"click": {"Options:\n  --lr FLOAT             [default: 0.1]\n  -d, --depth INTEGER RANGE  how deep  [default: 4; 1<=x<=9]\n  --act [relu|gelu]\n  --help                 Show this message and exit.\n", []Flag{
			{Option: "--lr", Kind: "float", Default: "0.1"}, {Option: "--depth", Kind: "int", Default: "4"}, {Option: "--act", Choices: []string{"relu", "gelu"}},
		}},
		"Go": {"Usage of ./train:\n  -lr float\n    \tlearning rate (default 0.01)\n  -n int\n    \trounds (default 3)\n", []Flag{
			{Option: "-lr", Kind: "float", Default: "0.01"}, {Option: "-n", Kind: "int", Default: "3"},
		}},
		"clap":    {"Options:\n      --lr <LR>    Learning rate [default: 0.5]\n  -V, --version    Print version\n", []Flag{{Option: "--lr", Kind: "float", Default: "0.5"}}},
		"nothing": {"This program has no options -- none at all.\n", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ParseHelp(test.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// python writes a program and returns the command that runs it.
func python(t *testing.T, source string) []string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("%v: this test runs Python programs", err)
	}
	file := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{path, file}
}

func TestDetectArgparse(t *testing.T) {
	argv := python(t, `import argparse
p = argparse.ArgumentParser()
p.add_argument("data")
p.add_argument("-l", "--lr", type=float, default=0.1)
p.add_argument("--opt", choices=["sgd", "adam"])
p.add_argument("--name", required=True)
p.add_argument("--fast", action="store_true")
p.parse_args()
open("/nonexistent/never", "w")
`)
	want := Interface{Source: "argparse", Flags: []Flag{
		{Option: "--lr", Kind: "float", Default: "0.1", Choices: []string{}}, {Option: "--opt", Choices: []string{"sgd", "adam"}},
		{Option: "--name", Choices: []string{}, Required: true}, {Option: "--fast", Kind: "bool", Default: "False", Choices: []string{}},
	}, Words: []string{"data"}}
	got, err := Detect(t.Context(), argv, false)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"--name"}, got.Missing(nil, argv)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if missing := got.Missing(nil, append(argv, "--name=x")); len(missing) > 0 {
		t.Errorf("%v is said to be missing", missing)
	}
}

func TestWordsAreThoseOfTheCommandLine(t *testing.T) {
	got, err := Detect(t.Context(), python(t, "import argparse\np = argparse.ArgumentParser()\np.add_argument('data')\np.add_argument('--lr')\np.parse_args(['mine'])\n"), false)
	if err != nil || len(got.Words) > 0 || len(got.Flags) != 1 {
		t.Errorf("%+v, %v: a program that parses a list of its own needs no words", got, err)
	}
}

func TestMissingWords(t *testing.T) {
	tests := map[string]struct {
		words []string
		want  []string
	}{
		"none is given":              {nil, []string{"data", "out"}},
		"flags are no words":         {[]string{"--name=x", "-v"}, []string{"data", "out"}},
		"one of two":                 {[]string{"d.csv"}, []string{"out"}},
		"a value may be one":         {[]string{"--name", "x", "d.csv"}, []string{}},
		"a number, standard input":   {[]string{"-5", "-"}, []string{}},
		"a file has some of them":    {[]string{"@args"}, nil},
		"a parameter is one by {lr}": {[]string{"{lr}", "o"}, []string{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			i := Interface{Words: []string{"data", "out"}}
			if diff := cmp.Diff(tc.want, i.MissingWords(append([]string{"python3", "train.py"}, tc.words...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDetectSaysWhyAProgramCannotBeAsked(t *testing.T) {
	if _, err := Detect(t.Context(), python(t, "import argparse\nimport no_such_module\n"), false); err == nil || !strings.Contains(err.Error(), "no_such_module") {
		t.Errorf("got %v, want the missing module", err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	for name, source := range map[string]string{"HTML": "from html.parser import HTMLParser", "a configuration": "import configparser\nconfigparser.ConfigParser()", "a comment": "x = 1\n# unlike ArgumentParser"} {
		if got, err := Detect(t.Context(), python(t, source+"\nopen("+strconv.Quote(ran)+", 'w')\n"), false); err != nil || got.Source != "" {
			t.Errorf("%s: %+v, %v; want that nothing is known", name, got, err)
		}
		if _, err := os.Stat(ran); err == nil {
			t.Errorf("%s: the program was run to ask for its flags", name)
		}
	}
	const subclass = "HfArgumentParser = __import__('arg' + 'parse').ArgumentParser\nHfArgumentParser().parse_args()\n"
	if got, err := Detect(t.Context(), python(t, subclass), false); err != nil || got.Source != "argparse" {
		t.Errorf("a subclass from elsewhere: %+v, %v", got, err)
	}
	for name, source := range map[string]string{"no flags are read": "import argparse\n", "another way": "print(1)\n"} {
		if got, err := Detect(t.Context(), python(t, source), false); err != nil || got.Source != "" {
			t.Errorf("%s: %+v, %v; want that nothing is known", name, got, err)
		}
	}
}

func TestPropose(t *testing.T) {
	tests := map[string]struct {
		flag Flag
		want string
	}{
		"a learning rate": {Flag{Option: "--lr", Kind: "float", Default: "0.01"}, "lr=log(0.001,0.1)"},
		"a share":         {Flag{Option: "--dropout", Kind: "float", Default: "0.1"}, "dropout=uniform(0,0.99)"},
		"a size":          {Flag{Option: "--batch-size", Kind: "int", Default: "32"}, "batch-size=logint(8,128)"},
		"a small number":  {Flag{Option: "--layers", Kind: "int", Default: "3"}, "layers=int(1,6)"},
		"choices":         {Flag{Option: "--opt", Choices: []string{"sgd", "adam"}}, "opt=choice(sgd,adam)"},
		"a switch":        {Flag{Option: "--fast", Kind: "bool"}, ""},
		"a seed":          {Flag{Option: "--seed", Kind: "int", Default: "3"}, ""},
		"a path":          {Flag{Option: "--data", Default: "x"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if p, ok := Propose(test.flag); ok {
				got = Form(p)
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestCheckAgainstFlags(t *testing.T) {
	found := Interface{Source: "argparse", Flags: []Flag{
		{Option: "--batch-size", Kind: "int"}, {Option: "--lr", Kind: "float"}, {Option: "--opt", Choices: []string{"sgd"}}, {Option: "--fast", Kind: "bool"},
		{Option: "--width", Kind: "int", Choices: []string{"8", "16"}},
		{Option: "--depth", Kind: "int", Choices: []string{"1", "2", "3"}},
	}}
	tests := map[string]string{
		"batch_size=int(1,4)": "", "lr=log(0.1,1)": "", "opt=choice(sgd)": "",
		"bach-size=int(1,4)":      "did you mean batch-size?",
		"batch-size=log(1,4)":     "takes whole numbers",
		"opt=choice(sgd,adam)":    `does not take "adam"`,
		"fast=choice(yes,no)":     "is a switch",
		"entirely-new=int(1,20)":  "has no flag",
		"batch-size=choice(8,16)": "", "batch-size=choice(a,b)": "takes whole numbers", "batch-size=choice(0.5,1)": "takes whole numbers",
		"lr=choice(0.1,1)": "", "lr=choice(low,high)": "takes numbers",
		"width=choice(8,16)": "", "width=int(8,16)": "write choice(8,16)",
		"depth=int(1,3)": "", "depth=int(1,4)": "write choice(1,2,3)",
	}
	for text, want := range tests {
		p, err := ParseParameter(text)
		if err != nil {
			t.Fatal(err)
		}
		switch err := found.Check(p); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestHydraConfiguration(t *testing.T) {
	got := flatten("", map[string]any{"model": map[string]any{"width": float64(64), "act": "relu"}, "lr": 0.1, "list": []any{1}, "none": nil})
	want := []Flag{{Option: "lr", Kind: "float", Default: "0.1"}, {Option: "model.act", Default: "relu"}, {Option: "model.width", Kind: "int", Default: "64"}, {Option: "none"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAScriptThatIgnoresItsParameters(t *testing.T) {
	tests := map[string]struct {
		source string
		pass   Passing
		want   string
	}{
		"constants":            {"LR = 0.1\n", AsFlags, "train.py may ignore --lr=...: no flags were found in it (argparse, click, typer, Hydra), and it does not read sys.argv. With --pass env it gets VERNIER_PARAM_LR"},
		"its own command line": {"import sys\nlr = sys.argv[1]\n", AsFlags, ""},
		"the Python client's":  {"from vernier_hpo import params\nlr = params()\n", AsFlags, ""},
		"the environment":      {"import os\n", AsEnvironment, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.WriteFile("train.py", []byte(tc.source), 0o600); err != nil {
				t.Fatal(err)
			}
			lr, err := ParseParameter("lr=log(1e-3,1)")
			if err != nil {
				t.Fatal(err)
			}
			s := Spec{Argv: []string{"/usr/bin/python3", "train.py"}, Pass: tc.pass, Parameters: []v1beta1.ParameterSpec{lr}}
			if diff := cmp.Diff(tc.want, s.Unread()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAMacroThatNamesNoParameter(t *testing.T) {
	for name, tc := range map[string]struct {
		word string
		want string // what the hint names
	}{
		"a parameter":         {"--lr={lr}", ""},
		"the trial":           {"out/{trial}/{seed}", ""},
		"a name mistyped":     {"--lr={rl}", "{rl}"},
		"a program in a word": {"print(f'{x}', 1)", ""},
		"JSON":                {`{"lr":1}`, ""},
		"a shell's variable":  {"--out=${HOME}/x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			lr, err := ParseParameter("lr=log(1e-3,1)")
			if err != nil {
				t.Fatal(err)
			}
			got := Spec{Argv: []string{"train", tc.word}, Parameters: []v1beta1.ParameterSpec{lr}}.Unknown()
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want a hint about %q", got, tc.want)
			}
		})
	}
}
