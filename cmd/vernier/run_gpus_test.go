package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestTrialsOfAProgramShareTheGPUs(t *testing.T) {
	tests := map[string]struct {
		have     int
		args     []string
		gpus     int
		parallel int32
		told     string
	}{
		"no GPUs":                         {0, []string{"-j", "3"}, 0, 3, ""},
		"one for each trial":              {8, nil, 1, 8, "each trial gets 1 of 8 GPUs, 8 at a time"},
		"no more than there are trials":   {8, []string{"-n", "5"}, 1, 5, "5 at a time"},
		"fewer at a time, as asked":       {8, []string{"-j", "2"}, 1, 2, "2 at a time"},
		"more at a time than there are":   {2, []string{"-j", "4"}, 0, 4, "no GPU"},
		"two for each trial":              {8, []string{"--gpus", "2"}, 2, 4, "each trial gets 2 of 8 GPUs, 4 at a time"},
		"more than there are":             {2, []string{"--gpus", "4"}, 4, 1, "each trial gets 4 of 2 GPUs"},
		"none, as asked":                  {8, []string{"--gpus", "0", "-j", "3"}, 0, 3, ""},
		"all is said on the command line": {8, []string{"--gpus", "1", "-j", "3"}, 1, 3, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var o scriptOptions
			cmd := &cobra.Command{}
			o.addFlags(cmd)
			if err := cmd.ParseFlags(tc.args); err != nil {
				t.Fatal(err)
			}
			o.spec.Parallel = o.parallel
			told := o.shareGPUs(tc.have)
			if o.spec.GPUs != tc.gpus || o.spec.Parallel != tc.parallel || (told == "") != (tc.told == "") || !strings.Contains(told, tc.told) {
				t.Errorf("%d GPUs, %d at a time, told %q; want %d, %d, %q", o.spec.GPUs, o.spec.Parallel, told, tc.gpus, tc.parallel, tc.told)
			}
		})
	}
}
