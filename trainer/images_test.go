package trainer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/trainer"
)

func TestImagesHaveCommands(t *testing.T) {
	commands, err := trainer.ParseCommands([]string{"team/*=any", "team/train:*=python3 /train.py --a=b"})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ container, want string }{
		"of two patterns the longest":   {"{name: main, image: 'team/train:1', args: [--lr]}", "python3 /train.py --a=b"},
		"another image":                 {"{name: main, image: 'team/other:1'}", "any"},
		"the container's own command":   {"{name: main, image: 'team/train:1', command: [mine]}", "mine"},
		"no pattern stands for slashes": {"{name: main, image: 'team/a/b', command: [mine]}", "mine"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inject := collector(trainer.StdOut)
			inject.Commands = commands
			_, got, _ := strings.Cut(strings.Join(injected(t, job(t, "containers: ["+c.container+"]"), inject).Spec.Containers[0].Command, " "), " -- ")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, pair := range []string{"", "team/train", "=x", "team/[=x", "team/train= "} {
		if _, err := trainer.ParseCommands([]string{pair}); err == nil {
			t.Errorf("%q was taken", pair)
		}
	}
}
