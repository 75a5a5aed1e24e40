package main

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// actVariable makes the test binary act as vernier, for programs that start it.
const actVariable = "VERNIER_TEST_ACTS_AS_VERNIER"

func TestMain(m *testing.M) {
	if os.Getenv(actVariable) != "" {
		os.Exit(execute(context.Background(), os.Args, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

const exampleFile = "../../examples/optimize/optimize.py"

// runExample runs the Python program of examples/optimize as a user does.
func runExample(t *testing.T, arguments ...string) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED: there is no python3 on this machine, so that the example in Python is not tried: ", err)
	}
	test := exec.CommandContext(t.Context(), python, append([]string{exampleFile}, arguments...)...)
	test.Env = append(os.Environ(), "VERNIER="+os.Args[0], actVariable+"=1")
	var stderr strings.Builder
	test.Stderr = &stderr
	out, err := test.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr.String())
	}
	if stderr.Len() > 0 {
		t.Errorf("on standard error: %s", stderr.String())
	}
	return string(out)
}

func TestPythonExample(t *testing.T) {
	source, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), "\n"); n > 40 {
		t.Errorf("the example has %d lines; it is to have at most 40", n)
	}
	out := runExample(t)
	found := regexp.MustCompile(`^best: loss (\S+) in trial \d+ with \{'lr': .*\}\n$`).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("got %s", out)
	}
	// Of 2,000 random searches of 40 trials (in Python), half reach 0.113 and one
	// in twenty 0.024.
	if loss, err := strconv.ParseFloat(found[1], 64); err != nil || loss > 0.01 {
		t.Errorf("the best of 40 trials is %s", found[1])
	}
}

// TestDocumentedPythonExample holds that docs/optimize.md shows what the example
// prints, numbers to about three digits.
func TestDocumentedPythonExample(t *testing.T) {
	page, err := os.ReadFile("../../docs/optimize.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`(?m)^\$ python3 examples/optimize/optimize.py ?(.*)\n(.*\n)`).FindAllStringSubmatch(string(page), -1)
	if len(shown) != 2 {
		t.Fatalf("the page shows %d runs of the example, want 2", len(shown))
	}
	for _, run := range shown {
		words, numbers := split(t, runExample(t, strings.Fields(run[1])...))
		wantWords, wantNumbers := split(t, run[2])
		if diff := cmp.Diff(wantWords, words); diff != "" {
			t.Errorf("optimize.py %s (-documented +real):\n%s", run[1], diff)
		}
		if diff := cmp.Diff(wantNumbers, numbers, cmpopts.EquateApprox(1e-3, 0)); diff != "" {
			t.Errorf("optimize.py %s (-documented +real):\n%s", run[1], diff)
		}
	}
}

// split takes a line apart into its numbers and the text between them.
func split(t *testing.T, line string) (words []string, numbers []float64) {
	t.Helper()
	number := regexp.MustCompile(`\d+(\.\d+)?(e-?\d+)?`)
	for _, text := range number.FindAllString(line, -1) {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	return number.Split(line, -1), numbers
}
