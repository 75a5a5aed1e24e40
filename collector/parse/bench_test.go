package parse

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/collector"
)

// corpus is what a kind of program prints, and who reads it.
type corpus struct {
	text  string
	bytes []byte
	line  func(t testing.TB) Line
	want  int // samples
}

const corpusLines = 1000

// corpora are made, not copied: lines in the manner of each program, with losses
// that fall and are printed with as many digits as it prints.
func corpora() map[string]corpus {
	text := func(metrics []string, filters ...string) func(t testing.TB) Line {
		return func(t testing.TB) Line { return newText(t, metrics, filters) }
	}
	two := []string{"loss", "accuracy"}
	const colons = `([\w|-]+)\s*:\s*([\d.eE+-]+)`
	var pairs, pytorch, keras, hf, tqdm, sparse, none, jsonLines, jsonDeep, logfmt, katib, csv strings.Builder
	csv.WriteString("accuracy,epoch,loss,lr-Adam,step\r\n")
	for i := range corpusLines {
		loss, acc := 2.5*math.Exp(-float64(i)/300), 1-math.Exp(-float64(i)/300)
		epoch := i/100 + 1
		fmt.Fprintf(&pairs, "epoch=%d step=%d loss=%.6f accuracy=%.4f\n", epoch, i, loss, acc)
		fmt.Fprintf(&pytorch, "Train Epoch: %d [%d/60000 (%d%%)]\tloss=%.6f\taccuracy=%.2f\n", epoch, i%100*600, i%100, loss, acc)
		if i%100 == 0 {
			fmt.Fprintf(&keras, "Epoch %d/10\n", epoch)
		}
		fmt.Fprintf(&keras, "%4d/1875 [==============>...............] - ETA: %ds - loss: %.4f - accuracy: %.4f\r", i%100*18, 100-i%100, loss, acc)
		fmt.Fprintf(&hf, "{'loss': %.4f, 'grad_norm': %s, 'learning_rate': %s, 'epoch': %.2f}\n", loss, float(7*loss), float(5e-5*(1-acc)), float64(i)/100)
		fmt.Fprintf(&tqdm, "\rEpoch %d: %3d%%|%s| %d/100 [00:%02d<00:%02d, %.2fit/s, v_num=0, loss=%.3f, accuracy=%.3f]", epoch, i%100, strings.Repeat("█", i%100/10), i%100, i%60, 59-i%60, 4+acc, loss, acc)
		fmt.Fprintf(&jsonLines, "{\"epoch\": %d, \"step\": %d, \"loss\": %s, \"accuracy\": %.4f, \"lr\": 0.001}\n", epoch, i, float(loss), acc)
		fmt.Fprintf(&jsonDeep, "{\"timestamp\": \"2026-03-04T05:%02d:%02d.123456Z\", \"level\": \"INFO\", \"logger\": \"trainer\", \"message\": \"a batch is done\", \"metrics\": {\"train\": {\"loss\": %s}, \"val\": {\"accuracy\": %.4f}}, \"tags\": [\"a\", \"b\"], \"global_step\": %d}\n", i/60%60, i%60, float(loss), acc, i)
		fmt.Fprintf(&logfmt, "ts=2026-03-04T05:%02d:%02dZ level=info msg=\"a batch is done\" epoch=%d step=%d loss=%.6f accuracy=%.4f\n", i/60%60, i%60, epoch, i, loss, acc)
		fmt.Fprintf(&katib, "2026-03-04T05:%02d:%02dZ INFO     {metricName: loss, metricValue: %.4f};{metricName: accuracy, metricValue: %.4f}\n", i/60%60, i%60, loss, acc)
		fmt.Fprintf(&csv, "%s,%d,%s,0.001,%d\r\n", float(acc), epoch, float(loss), i)
		chatter := "2026-03-04 05:06:07,123 INFO trainer.py:120 downloading shard of the data set to /data/cache, please wait for it to finish before you look at the results"
		fmt.Fprintln(&none, chatter)
		fmt.Fprintf(&sparse, "%s size=%d MB\n", chatter, i)
		if i%100 == 0 {
			fmt.Fprintf(&sparse, "epoch=%d loss=%.6f accuracy=%.4f\n", epoch, loss, acc)
		}
	}
	all := map[string]corpus{
		"pairs":        {pairs.String(), nil, text(two), 2 * corpusLines},
		"pytorch":      {pytorch.String(), nil, text(two), 2 * corpusLines},
		"tqdm":         {tqdm.String(), nil, text(two), 2 * corpusLines},
		"sparse":       {sparse.String(), nil, text(two), corpusLines / 50},
		"no metric":    {none.String(), nil, text(two), 0},
		"keras filter": {keras.String(), nil, text(two, colons), 2 * corpusLines},
		"hf filter":    {hf.String(), nil, text([]string{"loss"}, `'([\w|-]+)'\s*:\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)`), corpusLines},
		"katib filter": {katib.String(), nil, text(two, `{metricName: ([\w|-]+), metricValue: ((-?\d+)(\.\d+)?)}`), 2 * corpusLines},
		"json":         {jsonLines.String(), nil, func(t testing.TB) Line { return newJSON(t, two...) }, 2 * corpusLines},
		"json deep":    {jsonDeep.String(), nil, func(t testing.TB) Line { return newJSON(t, "metrics.train.loss", "metrics.val.accuracy") }, 2 * corpusLines},
		"logfmt":       {logfmt.String(), nil, func(t testing.TB) Line { return newLogfmt(t, two...) }, 2 * corpusLines},
		"csv":          {csv.String(), nil, func(t testing.TB) Line { return newCSV(t, two...) }, 2 * corpusLines},
	}
	for name, c := range all {
		c.bytes = []byte(c.text)
		all[name] = c
	}
	return all
}

// float prints as Python's repr does.
func float(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// read parses a corpus, cut into lines as the sources cut it: a carriage return
// ends a line too, and is looked for once and not in each line; lines without
// samples are passed over.
func (c corpus) read(t testing.TB, p Line, dst []collector.Point) int {
	n := 0
	b := c.bytes
	next := func(c byte, from int) int {
		if k := bytes.IndexByte(b[from:], c); k >= 0 {
			return from + k
		}
		return len(b)
	}
	lf, cr := next('\n', 0), next('\r', 0)
	skipper, _ := p.(*Text)
	dense := false
	for i := 0; i < len(b); {
		if skipper != nil && !dense {
			if i += skipper.Skip(b[i:cr]); i > lf {
				lf = next('\n', i)
			}
			if i == len(b) {
				break
			}
		}
		end := min(lf, cr)
		out, err := p.Parse(dst, b[i:end])
		if err != nil {
			t.Fatal(err)
		}
		n += len(out)
		dense = len(out) > 0
		if end == len(b) {
			break
		}
		if end == lf {
			lf = next('\n', end+1)
		} else {
			cr = next('\r', end+1)
		}
		i = end + 1
	}
	return n
}

func TestCorporaAreReadWhole(t *testing.T) {
	for name, c := range corpora() {
		t.Run(name, func(t *testing.T) {
			if n := c.read(t, c.line(t), nil); n != c.want {
				t.Errorf("%d samples, want %d", n, c.want)
			}
		})
	}
}

// BenchmarkLines reads what programs print. The speed is that of one core over
// the bytes read; cutting into lines is part of it.
func BenchmarkLines(b *testing.B) {
	for name, c := range corpora() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(c.bytes)))
			b.ReportAllocs()
			p, dst := c.line(b), make([]collector.Point, 0, 16)
			for b.Loop() {
				c.read(b, p, dst)
			}
		})
	}
}
