package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// annotationFiles of an experiment that a command line made has the digests of the files
// that its results are of (a JSON object, by path).
const annotationFiles = "vernier.ml/files"

// mostHashed bounds what is looked at, in bytes, and mostNoted how many files: programs and
// their configurations are small, and data may be named by a pattern.
const (
	mostHashed = 16 << 20
	mostNoted  = 100
)

// filesOf are the digests of the files of a folder that the words of a command line name,
// such as a program and its configuration.
func filesOf(dir string, argv []string) map[string]string {
	digests := map[string]string{}
	left := int64(mostHashed)
	for _, word := range argv {
		if len(digests) == mostNoted {
			break
		}
		if at := strings.LastIndexByte(word, '='); at >= 0 {
			word = word[at+1:]
		}
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || !filepath.IsLocal(name) {
			continue
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > left {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		left -= info.Size()
		sum := sha256.Sum256(text)
		digests[name] = hex.EncodeToString(sum[:8])
	}
	return digests
}

// noteFiles writes the digests to an experiment. While there are results of other files,
// as of a program before it was edited, it keeps theirs and says so.
func noteFiles(there *v1beta1.Experiment, here *unstructured.Unstructured, digests map[string]string, say io.Writer) {
	text, _ := json.Marshal(digests) // strings can be written
	if there != nil && there.Status.TrialsSucceeded > 0 && there.Annotations[annotationFiles] != "" {
		text = []byte(there.Annotations[annotationFiles])
		var were map[string]string
		_ = json.Unmarshal(text, &were) // what was not written here names no files
		var changed []string
		for _, name := range slices.Sorted(maps.Keys(digests)) {
			if old := were[name]; old != "" && old != digests[name] {
				changed = append(changed, name)
			}
		}
		if len(changed) > 0 {
			fmt.Fprintf(say, "Warning: %s changed since experiment %s began: of its results so far (%s), those from before the change are of what was there then; --replace begins anew\n",
				strings.Join(changed, ", "), there.Name, countOfTrials(int(there.Status.TrialsSucceeded)))
		}
	}
	annotations := here.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationFiles] = string(text)
	here.SetAnnotations(annotations)
}
