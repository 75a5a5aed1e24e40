package trainer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

func TestAContainerWithoutACommandRunsThatOfItsImage(t *testing.T) {
	const image = "imagePullSecrets: [{name: team}]\nserviceAccountName: sa\n"
	lost := fmt.Errorf("%w: no answer", trainer.ErrImage)
	cases := map[string]struct {
		container        string
		entrypoint, rest []string
		err              error
		command, args    string
	}{
		"its entrypoint and command":     {container: "{name: main, image: i}", entrypoint: []string{"python"}, rest: []string{"train.py", "-v"}, command: "python", args: "train.py -v"},
		"arguments replace its command":  {container: "{name: main, image: i, args: [--lr, x]}", entrypoint: []string{"python", "t.py"}, rest: []string{"-v"}, command: "python t.py", args: "--lr x"},
		"a command alone":                {container: "{name: main, image: i}", rest: []string{"train", "-v"}, command: "train", args: "-v"},
		"arguments without entrypoint":   {container: "{name: main, image: i, args: [train]}", rest: []string{"sh"}, command: "train"},
		"the container's own command":    {container: "{name: main, image: i, command: [a], args: [b]}", entrypoint: []string{"python"}, command: "a", args: "b"},
		"an image that runs nothing":     {container: "{name: main, image: i}", err: trainer.ErrNoCommand},
		"an image that is not known now": {container: "{name: main, image: i}", err: lost},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inject := collector(trainer.StdOut)
			var asked trainer.Image
			inject.Entrypoint = func(i trainer.Image) ([]string, []string, error) {
				asked = i
				if errors.Is(c.err, trainer.ErrImage) {
					return nil, nil, c.err
				}
				return c.entrypoint, c.rest, nil
			}
			obj := job(t, image+"containers: ["+c.container+"]")
			obj.SetNamespace("ml")
			if c.err != nil {
				if err := trainer.Inject(obj, kind.For(obj.GroupVersionKind()), inject); !errors.Is(err, c.err) {
					t.Errorf("%v, want %v", err, c.err)
				}
				return
			}
			main := injected(t, obj, inject).Spec.Containers[0]
			_, ours, _ := strings.Cut(strings.Join(main.Command, " "), " -- ")
			if ours != c.command || strings.Join(main.Args, " ") != c.args {
				t.Errorf("it runs %v with %v, want %s with %s", main.Command, main.Args, c.command, c.args)
			}
			if strings.Contains(c.container, "command") {
				return
			}
			if diff := cmp.Diff(trainer.Image{Name: "i", Namespace: "ml", ServiceAccount: "sa", PullSecrets: []string{"team"}}, asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}
