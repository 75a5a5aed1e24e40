package main

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// actVariable makes the test binary act as vernier, for programs that start it.
const actVariable = "VERNIER_TEST_ACTS_AS_VERNIER"

func TestMain(m *testing.M) {
	if os.Getenv(actVariable) != "" {
		os.Exit(execute(context.Background()))
	}
	os.Exit(m.Run())
}

// TestPythonExample runs the Python program of examples/optimize as a user does.
func TestPythonExample(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED: there is no python3 on this machine, so that the example in Python is not tried: ", err)
	}
	const file = "../../examples/optimize/optimize.py"
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), "\n"); n > 40 {
		t.Errorf("the example has %d lines; it is to have at most 40", n)
	}
	test := exec.CommandContext(t.Context(), python, file)
	test.Env = append(os.Environ(), "VERNIER="+os.Args[0], actVariable+"=1")
	var stderr strings.Builder
	test.Stderr = &stderr
	out, err := test.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr.String())
	}
	found := regexp.MustCompile(`^best: loss (\S+) in trial \d+ with \{'lr': .*\}\n$`).FindSubmatch(out)
	if found == nil {
		t.Fatalf("got %s", out)
	}
	// Of 2,000 random searches of 40 trials (in Python), half reach 0.113 and one
	// in twenty 0.024.
	if loss, err := strconv.ParseFloat(string(found[1]), 64); err != nil || loss > 0.01 {
		t.Errorf("the best of 40 trials is %s", found[1])
	}
	if stderr.Len() > 0 {
		t.Errorf("on standard error: %s", stderr.String())
	}
}
