package probe_test

import (
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/collector/probe"
)

func TestTheFormatOfAFileIsGuessed(t *testing.T) {
	object := `{"loss": 3}` + "\n"
	tests := map[string]struct {
		name, text string
		filters    []string
		want       string
	}{
		"objects":                              {"train.log", object, nil, "JSON"},
		"a log line before objects":            {"metrics.json", "INFO starting with lr=0.1\n" + object, nil, "JSON"},
		"many log lines before objects":        {"metrics.jsonl", strings.Repeat("INFO step=1 took=0.1\n", 1000) + object, nil, "JSON"},
		"log lines without values":             {"train.log", "INFO starting\nINFO ready\n" + object, nil, "JSON"},
		"one log line, by a name that says no": {"train.log", "INFO lr=0.1\n" + object + object, nil, "JSON"},
		"text by a name that says JSON":        {"train.json", "loss=3\n", nil, "TEXT"},
		"a configuration before text":          {"train.log", `{"lr": 0.1}` + "\nloss=3\nloss=2\n", nil, "TEXT"},
		"an object over several lines":         {"m.json", "{\n  \"loss\": 3\n}\n", nil, "JSON"},
		"an object without its end":            {"train.log", `{"loss": 3`, nil, "JSON"},
		"a byte order mark":                    {"train.log", "\ufeff" + object, nil, "JSON"},
		"braces that are no object":            {"train.log", "start\n{lr} loss=3\n", nil, "TEXT"},
		"filters, which are for text":          {"train.log", object, []string{`"(\w+)": ([\d.]+)`}, "TEXT"},
		"lines of a logger":                    {"train.log", "starting\nts=2026-03-04T05:06:07Z level=info msg=\"all is well\" loss=0.5\n", nil, "LOGFMT"},
		"lines of a logger without a time":     {"train.log", "level=info loss=3 step=7 msg=\"a b\"\n", nil, "LOGFMT"},
		"lines of a logger beside text":        {"train.log", "ts=2026-03-04T05:06:07Z level=info msg=x\nloss = 0.5\n", nil, "TEXT"},
		"text with a time":                     {"train.log", "time=3 loss=0.5 accuracy=0.9\n", nil, "TEXT"},
		"text after a time":                    {"train.log", "2026-03-04T05:06:07Z level=1 time=3 loss=0.5\n", nil, "TEXT"},
		"a dictionary of Python":               {"train.log", "{'eval_loss': 1.9, 'epoch': 1.0}\n", nil, "TEXT"},
		"plain text":                           {"train.log", "loss=0.5 accuracy=0.9\n", nil, "TEXT"},
		"nothing":                              {"m.json", "", nil, "TEXT"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := run(t, probe.Config{Path: write(t, tc.name, tc.text), Filters: tc.filters})
			if r.Format != tc.want {
				t.Errorf("%s, want %s", r.Format, tc.want)
			}
		})
	}
}
