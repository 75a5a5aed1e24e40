package trainer_test

import (
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

func TestTheCollectorsDirectoryHidesNothingThatIsNeeded(t *testing.T) {
	const main = "command: [python3, train.py]"
	cases := map[string]struct {
		kind, path, container string
		want                  string // "" is accepted
	}{
		"the system":                             {trainer.File, "/etc/m.json", main, "empty directory over /etc, which the container needs: write the metrics to a directory of their own, for instance /etc/metrics/m.json"},
		"programs of the system":                 {trainer.File, "/usr/m.json", main, "over /usr,"},
		"below the libraries":                    {trainer.TensorFlowEvent, "/usr/lib/python3/", main, "over /usr/lib/python3,"},
		"the kernel's files":                     {trainer.File, "/proc/1/m.json", main, "for instance /metrics/m.json"},
		"everybody's home":                       {trainer.File, "/home/m.json", main, "over /home,"},
		"a directory below the system":           {trainer.File, "/var/log/katib/m.json", main, ""},
		"the directory of temporary files":       {trainer.File, "/tmp/m.json", main, ""},
		"a system directory on a volume":         {trainer.File, "/opt/m.json", main + ", volumeMounts: [{name: v, mountPath: /opt}]", ""},
		"the program":                            {trainer.File, "/home/me/m.json", "command: [/home/me/bin/train]", "command[0]: names /home/me/bin/train: the collector would mount an empty directory over /home/me and hide it"},
		"the program, below the working dir":     {trainer.File, "/home/me/m.json", "workingDir: /home/me, command: [./train]", "names /home/me/train"},
		"a program of the PATH":                  {trainer.File, "/home/me/m.json", "workingDir: /home/me, command: [train]", ""},
		"the script":                             {trainer.File, "/home/me/proj/m.json", "command: [python3, -u, /home/me/proj/train.py]", "for instance /home/me/proj/metrics/m.json"},
		"the script, by the working dir":         {trainer.TensorFlowEvent, "/home/me/proj", "workingDir: /home/me/proj, command: [python3], args: [train.py]", "args[0]: names /home/me/proj/train.py"},
		"the script, in a line of the shell":     {trainer.File, "/home/me/proj/m.json", "command: [sh, -c, 'cd /x && python3 \"/home/me/proj/train.py\" --lr 1']", "command[2]: names /home/me/proj/train.py"},
		"the script of a flag":                   {trainer.File, "/w/m.json", "command: [run, --main=/w/train.py]", "names /w/train.py"},
		"a script elsewhere":                     {trainer.File, "/home/me/proj/metrics/m.json", "command: [python3, /home/me/proj/train.py]", ""},
		"a directory whose name begins alike":    {trainer.File, "/w/m.json", "command: [python3, /w2/train.py]", ""},
		"what the program writes":                {trainer.File, "/logs/m.json", "command: [train, --out=/logs/model.pt, /logs/m.json]", ""},
		"the script on a volume below":           {trainer.TensorFlowEvent, "/w", "command: [python3, /w/code/train.py], volumeMounts: [{name: v, mountPath: /w/code}]", ""},
		"the script beside a volume below":       {trainer.TensorFlowEvent, "/w", "command: [python3, /w/train.py], volumeMounts: [{name: v, mountPath: /w/code}]", "names /w/train.py"},
		"the script, all of it on a volume":      {trainer.File, "/w/m.json", "command: [python3, /w/train.py], volumeMounts: [{name: v, mountPath: /w}]", ""},
		"a relative script, no working dir said": {trainer.File, "/w/m.json", "command: [python3, train.py]", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			col := collector(c.kind)
			col.Path = c.path
			obj := job(t, "containers: [{name: main, image: i, "+c.container+"}]")
			for range 2 { // an injected job is looked at the same way
				err := trainer.Inject(obj, kind.For(obj.GroupVersionKind()), col)
				if c.want == "" {
					if err != nil {
						t.Fatalf("refused: %v", err)
					}
					continue
				}
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			}
		})
	}
}
