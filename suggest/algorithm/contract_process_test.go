package algorithm_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/suggest/propose"
)

const (
	childVariable = "VERNIER_CONTRACT_CHILD"
	childPrefix   = "proposal: "
)

// freshProcessAgrees runs this same test again in another process, which prints
// its proposals, and compares.
func freshProcessAgrees(t *testing.T, r propose.Registration) {
	var want []string
	for _, name := range spaceNames() {
		a, space := build(t, r, spaces()[name])
		s := studyOf(t, a, space, 11, 12)
		want = append(want, lines(space, ask(t, a, s, 3))...)
	}
	if os.Getenv(childVariable) != "" {
		for _, line := range want {
			_, _ = os.Stdout.WriteString(childPrefix + line + "\n")
		}
		return
	}
	levels := strings.Split(t.Name(), "/")
	for i, level := range levels {
		levels[i] = "^" + regexp.QuoteMeta(level) + "$"
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+strings.Join(levels, "/"), "-test.count=1")
	child.Env = append(os.Environ(), childVariable+"=1")
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("the other process: %v\n%s", err, out)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		if _, proposal, ok := strings.Cut(line, childPrefix); ok {
			got = append(got, strings.TrimSuffix(proposal, "\n"))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
