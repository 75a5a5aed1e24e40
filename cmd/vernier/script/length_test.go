package script

import "testing"

// Trials of a third of the default, and of a third of that, must still train for something.
func TestLengthsOfTrainings(t *testing.T) {
	for name, c := range map[string]struct {
		flag Flag
		want string
	}{
		"epochs":               {Flag{Option: "--epochs", Kind: "int", Default: "27"}, "epochs=int(1,27)"},
		"steps":                {Flag{Option: "--max_steps", Kind: "int", Default: "10000"}, "max_steps=int(370,10000)"},
		"rounds":               {Flag{Option: "--num-rounds", Kind: "int", Default: "100"}, "num-rounds=int(3,100)"},
		"few epochs":           {Flag{Option: "--epochs", Kind: "int", Default: "5"}, ""},
		"epochs of a warm-up":  {Flag{Option: "--warmup-epochs", Kind: "int", Default: "27"}, ""},
		"how often it logs":    {Flag{Option: "--log-steps", Kind: "int", Default: "100"}, ""},
		"steps of a rollout":   {Flag{Option: "--n-steps", Kind: "int", Default: "2048"}, ""},
		"a default of nothing": {Flag{Option: "--epochs", Kind: "int"}, ""},
	} {
		p, ok := Length(c.flag)
		if got := Form(p); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s: %s, %t; want %s", name, got, ok, c.want)
		}
	}
}
