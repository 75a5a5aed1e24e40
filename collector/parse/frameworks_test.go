package parse_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// documented are the files with filters that users copy.
var documented = []string{"../../docs/collectors-text.md", "../../docs/collectors.md", "../../docs/metrics.md", "../../docs/cli.md", "../../README.md", "../../cmd/vernier/collect.go"}

// yamlFilter, flagFilter and tableFilter are the places where a filter stands.
var (
	yamlFilter  = regexp.MustCompile(`metricsFormat: \['((?:[^']|'')*)'\]`)
	flagFilter  = regexp.MustCompile(`--filter '([^']*)'`)
	tableFilter = regexp.MustCompile("(?m)^\\|[^|\n]*(?:\\\\\\|[^|\n]*)* \\| `((?:[^`|]|\\\\\\|)*\\([^`]*\\)(?:[^`|]|\\\\\\|)*)` \\|")
)

// documentedFilters are the filters in the documentation.
func documentedFilters(t *testing.T) (filters []string) {
	t.Helper()
	for _, path := range documented {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range yamlFilter.FindAllSubmatch(text, -1) {
			filters = append(filters, strings.ReplaceAll(string(m[1]), "''", "'"))
		}
		for _, m := range flagFilter.FindAllSubmatch(text, -1) {
			filters = append(filters, string(m[1]))
		}
		for _, m := range tableFilter.FindAllSubmatch(text, -1) {
			filters = append(filters, strings.ReplaceAll(string(m[1]), `\|`, "|"))
		}
	}
	slices.Sort(filters)
	return slices.Compact(filters)
}

// The filters of the documentation, by what they are for.
const (
	none     = ""
	colon    = parse.ColonFilter
	word     = `(\w+): ([-+.\deE]+)`
	dict     = parse.DictFilter
	lightgbm = `(\S+'s \S+): ([-+.\deE]+)`
	nanogpt  = `(train loss|val loss|loss) ([-+.\deE]+)`
	array    = `(\w+)=\[?([-+.\deE]+)`
	blanks   = `(valid loss|Mean reward): ([-+.\deE]+)`
	imagenet = `\* +(Acc@1) ([-+.\deE]+)`
	espnet   = `\[valid\].*?\b(loss)=([-+.\deE]+)`
	megatron = `\| ([\w -]+): ([-+.\deE]+)`
)

// frameworks are lines in the formats of training frameworks, with the filter that
// the documentation gives for them, and what is read: name=value@step.
var frameworks = map[string]struct {
	filter  string
	metrics []string
	lines   string
	want    []string
}{
	"PyTorch quickstart": {colon, []string{"loss", "Accuracy"},
		"Epoch 1\n-------------------------------\nloss: 2.302990  [   64/60000]\nloss: -8.7654e-04  [ 6464/60000]\nTest Error: \n Accuracy: 44.7%, Avg loss: 2.155\n",
		[]string{"loss=2.30299@1", "loss=-0.00087654@1", "Accuracy=44.7@1", "loss=2.155@1"}},
	"PyTorch MNIST example": {colon, []string{"Loss"},
		"Train Epoch: 1 [640/60000 (1%)]\tLoss: 1.2e-01\nTrain Epoch: 2 [0/60000 (0%)]\tLoss: 0.043210\n",
		[]string{"Loss=0.12@1", "Loss=0.04321@2"}},
	"PyTorch CIFAR tutorial":           {colon, []string{"loss"}, "[1,  2000] loss: 2.177\n[1,  4000] loss: 1.8e+00\n", []string{"loss=2.177", "loss=1.8"}},
	"tqdm":                             {none, []string{"loss", "acc"}, " 45%|████▌     | 45/100 [00:10<00:12,  4.50it/s, acc=0.9, loss=-1.23e-05]\n", []string{"acc=0.9", "loss=-1.23e-05"}},
	"a configuration, by name: value":  {colon, []string{"loss"}, "loss: infonce\nloss: nan\nloss: -inf, lr: 1\n", []string{"loss=NaN", "loss=-Inf"}},
	"a configuration, as a dictionary": {dict, []string{"loss"}, "{'loss': 'infonce'}\n{'loss': inf}\n", []string{"loss=+Inf"}},
	"Lightning": {none, []string{"train_loss", "val_loss"},
		"Epoch 3: 100%|██████████| 100/100 [00:01<00:00, 80.1it/s, v_num=0, train_loss=8.76e-5, val_loss=-0.400]\n",
		[]string{"train_loss=8.76e-05@3", "val_loss=-0.4@3"}},
	"Keras 2": {colon, []string{"loss", "val_loss"},
		"Epoch 2/5\n1875/1875 [==============================] - 4s 2ms/step - loss: 8.7654e-04 - accuracy: 0.9123 - val_loss: -1.5e+02 - val_accuracy: 0.9534\n",
		[]string{"loss=0.00087654@2", "val_loss=-150@2"}},
	"Keras 3": {word, []string{"loss", "val_loss"},
		"Epoch 2/5\n\x1b[1m1875/1875\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m4s\x1b[0m 2ms/step - accuracy: 0.8793 - loss: 4.3e-05 - val_accuracy: 0.9563 - val_loss: -0.1423\n",
		[]string{"loss=4.3e-05@2", "val_loss=-0.1423@2"}},
	"Trainer of Hugging Face": {dict, []string{"loss", "eval_loss"},
		"{'loss': 0.4321, 'grad_norm': 2.1, 'learning_rate': 5e-05, 'epoch': 1.0}\n{'eval_loss': 8.7e-04, 'eval_runtime': 1.5, 'epoch': 2.0}\n{'loss': '-0.25', 'learning_rate': '5e-05', 'epoch': '3'}\n{'loss': nan, 'epoch': 4.0}\n",
		[]string{"loss=0.4321@1", "eval_loss=0.00087@2", "loss=-0.25@3", "loss=NaN@4"}},
	"Accelerate": {dict, []string{"accuracy", "f1"}, "epoch 0: {'accuracy': 0.8431, 'f1': -8.9e-01}\n", []string{"accuracy=0.8431@0", "f1=-0.89@0"}},
	"XGBoost": {colon, []string{"eval-rmse", "eval-ndcg@3"}, "[0]\ttrain-rmse:2.50000\teval-rmse:2.61\n[10]\ttrain-rmse:0.51234\teval-rmse:-6.1e-01\n[11]\teval-ndcg@3:0.86\n",
		[]string{"eval-rmse=2.61@0", "eval-rmse=-0.61@10", "eval-ndcg@3=0.86@11"}},
	"LightGBM": {lightgbm, []string{"valid_0's l2", "valid_0's ndcg@3"}, "[10]\tvalid_0's l2: 0.25\tvalid_0's auc: 0.9\n[20]\tvalid_0's l2: -8.1e-05\tvalid_0's ndcg@3: 0.86\n",
		[]string{"valid_0's l2=0.25@10", "valid_0's l2=-8.1e-05@20", "valid_0's ndcg@3=0.86@20"}},
	"CatBoost": {colon, []string{"test"}, "0:\tlearn: 0.6931\ttest: 0.6927\tbest: 0.6927 (0)\ttotal: 50.1ms\tremaining: 50s\n10:\tlearn: 0.5\ttest: 6.1e-03\tbest: 0.6 (10)\n", []string{"test=0.6927@0", "test=0.0061@10"}},
	"MMEngine": {colon, []string{"loss", "accuracy/top1"},
		"2023/01/05 12:00:00 - mmengine - INFO - Epoch(train)  [1][10/100]  lr: 1.0000e-02  eta: 0:10:00  time: 0.1  memory: 100  loss: 2.3e-01\n2023/01/05 12:00:00 - mmengine - INFO - Epoch(val) [1][5/5]    accuracy/top1: 51.2\n",
		[]string{"loss=0.23@1", "accuracy/top1=51.2@1"}},
	"MMEngine by iterations": {colon, []string{"loss", "mIoU"},
		"2023/01/05 12:00:00 - mmengine - INFO - Iter(train) [  100/80000]  lr: 1.0000e-02  eta: 0:10:00  time: 0.1  loss: 2.3e-01\n2023/01/05 12:00:00 - mmengine - INFO - Iter(val) [500/500]    aAcc: 80.1  mIoU: 40.5\n",
		[]string{"loss=0.23@100", "mIoU=40.5"}},
	"Megatron": {megatron, []string{"lm loss", "grad norm"},
		" iteration      100/  500000 | consumed samples:        12800 | elapsed time per iteration (ms): 341.0 | learning rate: 1.500000E-05 | global batch size:   128 | lm loss: 7.654321E+00 | grad norm: -1.234 |\n",
		[]string{"lm loss=7.654321@100", "grad norm=-1.234@100"}},
	"fairseq": {colon, []string{"train_loss", "valid_loss"},
		"2021-01-05 21:54:56 | INFO | train | {\"epoch\": 21, \"train_loss\": \"816.933\", \"train_lr\": \"2.4e-05\"}\n2021-01-05 21:54:57 | INFO | valid | {\"epoch\": 21, \"valid_loss\": \"5.933\"}\n",
		[]string{"train_loss=816.933@21", "valid_loss=5.933@21"}},
	"zap on a console": {colon, []string{"loss"}, "2026-03-04T05:06:07.000Z\tINFO\ttrain\t{\"step\": 3, \"loss\": -0.5}\n", []string{"loss=-0.5@3"}},
	"numpy 2, as a dictionary": {dict, []string{"f1", "loss", "acc"},
		"epoch 2: {'f1': np.float64(0.9), 'loss': tensor(-3e-2, device='cuda:0'), 'acc': np.float32(21.)}\n", []string{"f1=0.9@2", "loss=-0.03@2", "acc=21@2"}},
	"torchtitan": {colon, []string{"loss", "tps"},
		"[rank0]:[titan] 2025-07-21 15:57:42,774 - root - INFO - step:  3  loss:  4.9925  grad_norm:  2.6422  memory:  9.46GiB(64.99%)  tps: 30,768  mfu: 0.32%\n",
		[]string{"loss=4.9925@3", "tps=30768@3"}},
	"NeMo": {colon, []string{"reduced_train_loss", "val_loss"},
		"Training epoch 0, iteration 1/99 | lr: 1.499e-07 | global_step: 1 | reduced_train_loss: 11.02 | train_step_timing in s: 5.3 | val_loss: 10.1\n",
		[]string{"reduced_train_loss=11.02@1", "val_loss=10.1@1"}},
	"Composer":    {colon, []string{"loss/train/total"}, "[batch=10/1000]:\n\t Train time/epoch: 0\n\t Train loss/train/total: 10.1234\n", []string{"loss/train/total=10.1234"}},
	"detectron2":  {colon, []string{"total_loss"}, "[03/20 12:00:00 d2.utils.events]:  eta: 0:10:00  iter: 19  total_loss: 2.345  loss_cls: 1.2  lr: 4.9953e-06  max_mem: 2000M\n", []string{"total_loss=2.345@19"}},
	"fastText":    {colon, []string{"avg.loss"}, "Progress:   1.2% words/sec/thread:   12345 lr:  0.098800 avg.loss:  1.098612 ETA:   0h 0m 5s\n", []string{"avg.loss=1.098612"}},
	"SpeechBrain": {blanks, []string{"valid loss"}, "epoch: 1, lr: 1.00e+00, steps: 1797 - train loss: 3.06e+02 - valid loss: 5.0e-01, valid ACC: 1.83e-01\n", []string{"valid loss=0.5@1"}},
	"rsl_rl": {blanks, []string{"Mean reward"},
		"                       Mean reward: -7.91\n               Mean episode length: 42.41\n", []string{"Mean reward=-7.91"}},
	"PyTorch ImageNet example": {imagenet, []string{"Acc@1"},
		"Epoch: [0][ 10/5005]\tTime  0.312 ( 0.512)\tLoss 6.9e+00 (7.0e+00)\tAcc@1   0.39 (  0.10)\nTest: [  0/196]\tAcc@1   1.56 (  1.56)\n *   Acc@1 70.160 Acc@5 89.702\n *   Acc@1 -1.5e+00 Acc@5 0\n",
		[]string{"Acc@1=70.16", "Acc@1=-1.5"}},
	"ESPnet": {espnet, []string{"loss"},
		"[PC] 2020-11-11 16:41:04,070 (trainer:243) INFO: 7epoch results: [train] iter_time=0.001, loss=1.613, lr_0=1e-3, [valid] loss_ctc=2.1, loss=-1.854, time=3.12 seconds\n",
		[]string{"loss=-1.854"}},
	"CleanRL": {array, []string{"episodic_return"}, "global_step=22, episodic_return=[21.]\nglobal_step=1022, episodic_return=[-8.5e-01]\n",
		[]string{"episodic_return=21@22", "episodic_return=-0.85@1022"}},
	"nanoGPT":     {nanogpt, []string{"val loss", "loss"}, "step 250: train loss 2.5012, val loss 2.6e-01\niter 260: loss -3.1e-05, time 12.34ms, mfu 1.0%\n", []string{"val loss=0.26@250", "loss=-3.1e-05@260"}},
	"torchtune":   {colon, []string{"Loss"}, "1|25|Loss: 1.2345:  10%|█         | 25/250 [00:10<01:30,  2.50it/s]\n", []string{"Loss=1.2345"}},
	"fastai":      {none, []string{"valid_loss"}, "epoch     train_loss  valid_loss  accuracy  time    \n0         0.512341    0.412313    0.912312  00:11   \n", nil},
	"Ultralytics": {none, []string{"box_loss"}, "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n        1/3      2.33G      1.165      1.553      1.221        215        640\n", nil},
}

func TestFrameworksAreReadAsTheDocumentationSays(t *testing.T) {
	filters := documentedFilters(t)
	for name, tc := range frameworks {
		t.Run(name, func(t *testing.T) {
			var use []string
			if tc.filter != none {
				if use = []string{tc.filter}; !slices.Contains(filters, tc.filter) {
					t.Errorf("the filter %s is not in the documentation, which has\n%s", tc.filter, strings.Join(filters, "\n"))
				}
			}
			p, err := parse.NewText(tc.metrics, use)
			if err != nil {
				t.Fatal(err)
			}
			got := readLines(t, p, tc.lines)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

// readLines are the samples of a text, name=value@step.
func readLines(t *testing.T, p parse.Line, text string) (got []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		samples, err := p.Parse(nil, []byte(strings.TrimRight(line, "\r\n")))
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
		for _, s := range samples {
			one := fmt.Sprintf("%s=%v", s.Metric, s.Value)
			if s.Step != collector.NoStep {
				one += fmt.Sprintf("@%d", s.Step)
			}
			got = append(got, one)
		}
	}
	return got
}

// Without a filter the same values are read at the end of a program, but for what is not
// sure to be the metric.
func TestFrameworksAreReadWithoutAFilter(t *testing.T) {
	others := map[string][]string{
		"PyTorch quickstart":       {"loss=2.30299@1", "loss=-0.00087654@1", "Accuracy=44.7@1"}, // Avg loss is another
		"numpy 2, as a dictionary": {"f1=0.9@2"},
		"torchtitan":               {"loss=4.9925@3"},
		"Composer":                 nil, // Train loss/train/total
		"ESPnet":                   nil,
		"CleanRL":                  nil,
	}
	for name, tc := range frameworks {
		if tc.filter == none {
			continue
		}
		t.Run(name, func(t *testing.T) {
			want, other := others[name]
			if !other {
				want = tc.want
			}
			if diff := cmp.Diff(want, readLines(t, parse.NewTextItems(tc.metrics), tc.lines)); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

// Each filter that users may copy is run on a log, with a sign and an exponent.
func TestEveryDocumentedFilterReadsALog(t *testing.T) {
	filters := documentedFilters(t)
	if len(filters) < 6 {
		t.Fatalf("only %d filters were found in the documentation: %q", len(filters), filters)
	}
	for _, filter := range filters {
		run, sign, exponent := false, false, false
		for _, tc := range frameworks {
			if tc.filter == filter {
				run = true
				values := strings.Join(tc.want, " ")
				sign = sign || strings.Contains(values, "=-")
				exponent = exponent || regexp.MustCompile(`\d[eE][-+]\d`).MatchString(tc.lines)
			}
		}
		if !run || !sign || !exponent {
			t.Errorf("%s: run %v, with a sign %v, with an exponent %v", filter, run, sign, exponent)
		}
	}
}
