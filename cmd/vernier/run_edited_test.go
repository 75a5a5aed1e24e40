package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAProgramThatWasEditedIsTold(t *testing.T) {
	tests := map[string]struct {
		program, config string // as they are now
		results         int32
		want            string
		keeps           bool
	}{
		"nothing changed":           {"print(1)", "a: 1", 3, "", true},
		"it has no results yet":     {"print(2)", "a: 1", 0, "", false},
		"its results are of before": {"print(2)", "a: 1", 3, "train.py changed since experiment charlm began: of its results so far (3 trials), those from before", true},
		"the configuration":         {"print(1)", "a: 2", 1, "conf.yaml changed", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := func(program, config string) map[string]string {
				for name, text := range map[string]string{"train.py": program, "conf.yaml": config} {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				return filesOf(dir, []string{"/usr/bin/python3", "train.py", "--config=" + filepath.Join(dir, "conf.yaml"), "--lr", "{lr}"})
			}
			began := files("print(1)", "a: 1")
			if len(began) != 2 {
				t.Fatalf("files %v, want those that the command line names here", began)
			}
			there, first, here := anExperiment(), &unstructured.Unstructured{Object: map[string]any{}}, &unstructured.Unstructured{Object: map[string]any{}}
			var said bytes.Buffer
			noteFiles(nil, first, began, &said)
			there.Annotations, there.Status.TrialsSucceeded = first.GetAnnotations(), tc.results
			noteFiles(there, here, files(tc.program, tc.config), &said)
			if got := said.String(); (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("said %q, want %q", got, tc.want)
			}
			if kept := cmp.Equal(first.GetAnnotations(), here.GetAnnotations()); kept != tc.keeps {
				t.Errorf("annotations %v, began with %v", here.GetAnnotations(), first.GetAnnotations())
			}
		})
	}
}

// A pattern of the shell may name any number of files of data: they are not all read, and
// the annotation has room for theirs.
func TestOnlySoMuchIsLookedAt(t *testing.T) {
	dir, argv := t.TempDir(), []string{"train.py"}
	for i := range 6000 {
		argv = append(argv, fmt.Sprintf("shard-%04d.bin", i))
	}
	for _, name := range argv {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range argv[1:4] {
		if err := os.Truncate(filepath.Join(dir, name), mostHashed/2); err != nil {
			t.Fatal(err)
		}
	}
	var here unstructured.Unstructured
	here.Object = map[string]any{}
	files := filesOf(dir, argv)
	noteFiles(nil, &here, files, io.Discard)
	if size := len(here.GetAnnotations()[annotationFiles]); size > 64<<10 {
		t.Errorf("an annotation of %d bytes", size)
	}
	if files["train.py"] == "" || files[argv[1]] == "" || files[argv[3]] != "" || files[argv[4]] == "" {
		t.Errorf("of the first files, which are %d bytes together, these were read: %v", 3*mostHashed/2, files)
	}
}
