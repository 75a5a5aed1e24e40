package trainer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// bare is a placeholder that stood alone and unquoted in YAML text.
type bare string

// parse reads a template into maps, lists and scalars. Strings still hold
// their placeholders.
func parse(template []byte) (map[string]any, error) {
	text := bytes.TrimSpace(template)
	if len(text) == 0 {
		return nil, &FieldError{Problem: "the template is empty: give a complete object, for example a batch/v1 Job"}
	}
	if text[0] == '{' && json.Valid(text) {
		return decodeJSON(text)
	}
	return parseYAML(string(text))
}

func decodeJSON(raw []byte) (map[string]any, error) {
	var obj map[string]any
	if err := kjson.Unmarshal(raw, &obj); err != nil {
		return nil, &FieldError{Problem: fmt.Sprintf("the template is not an object: %v", err)}
	}
	return obj, nil
}

// parseYAML reads YAML text. A placeholder may be where YAML's grammar does not
// allow one, as in [${trialParameters.x}], so each is first replaced by a plain word
// that does not occur in the text.
func parseYAML(text string) (map[string]any, error) {
	word := "placeholder"
	for strings.Contains(text, word) {
		word += "x"
	}
	var found []string
	text = anyPattern.ReplaceAllStringFunc(text, func(p string) string {
		found = append(found, p)
		return fmt.Sprintf("%s%dend", word, len(found)-1)
	})

	var doc yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(&doc); err != nil {
		return nil, &FieldError{Problem: fmt.Sprintf("the template is not YAML: %v", restored(err.Error(), word, found))}
	}
	for {
		var more yaml.Node
		err := dec.Decode(&more)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(more.Content) != 1 || more.Content[0].ShortTag() != "!!null" { // after a last ---
			return nil, &FieldError{Problem: "the template holds more than one document: a trial is one object"}
		}
	}
	t := tokens{word, found}
	t.mark(&doc, nil)
	var tree any
	if err := doc.Decode(&tree); err != nil {
		return nil, &FieldError{Problem: fmt.Sprintf("the template is not YAML: %v", restored(err.Error(), word, found))}
	}
	obj, ok := t.restore(tree).(map[string]any)
	if !ok {
		return nil, &FieldError{Problem: "the template is not an object: it must begin with apiVersion and kind"}
	}
	return obj, nil
}

// tokens are the words that replace placeholders while YAML is parsed.
type tokens struct {
	word  string
	found []string
}

func (t tokens) name(i int, suffix string) string {
	return fmt.Sprintf("%s%d%s", t.word, i, suffix)
}

// index is the number of the placeholder that a word replaces.
func (t tokens) index(value string) (int, bool) {
	rest, _ := strings.CutPrefix(value, t.word)
	digits, _ := strings.CutSuffix(rest, "end")
	i, err := strconv.Atoi(digits)
	return i, err == nil && i < len(t.found) && value == t.name(i, "end")
}

// booleans are those of YAML 1.1, which kubectl and Katib read.
var booleans = map[string]string{
	"yes": "true", "Yes": "true", "YES": "true", "on": "true", "On": "true", "ON": "true",
	"no": "false", "No": "false", "NO": "false", "off": "false", "Off": "false", "OFF": "false",
}

// mark renames words that are unquoted scalars of their own, and keeps what looks
// like a date a string, as Kubernetes does.
func (t tokens) mark(n *yaml.Node, path []string) {
	if n.Kind == yaml.ScalarNode {
		if n.ShortTag() == "!!timestamp" {
			n.Tag = "!!str"
		}
		if n.Style == 0 && n.Tag != "!!binary" {
			if i, ok := t.index(n.Value); ok {
				n.Value = t.name(i, "bare")
			}
		}
	}
	for i, c := range n.Content {
		at, key := path, false
		switch n.Kind {
		case yaml.SequenceNode:
			at = under(path, strconv.Itoa(i))
		case yaml.MappingNode:
			if key = i%2 == 0; !key {
				at = under(path, n.Content[i-1].Value)
			}
		}
		if b := booleans[c.Value]; b != "" && c.Kind == yaml.ScalarNode && c.Style == 0 && !key && !stringsOnly(at) {
			c.Tag, c.Value = "!!bool", b
		}
		t.mark(c, at)
	}
}

// restore puts the placeholders back into a decoded tree.
func (t tokens) restore(tree any) any {
	bares := map[string]string{}
	var pairs []string
	for i, p := range t.found {
		bares[t.name(i, "bare")] = p
		pairs = append(pairs, t.name(i, "end"), p)
	}
	replacer := strings.NewReplacer(pairs...)
	key := func(k any) string {
		s := fmt.Sprint(k)
		if p, ok := bares[s]; ok {
			return p
		}
		return replacer.Replace(s)
	}
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			if p, ok := bares[v]; ok {
				return bare(p)
			}
			return replacer.Replace(v)
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
			return v
		case map[string]any:
			out := make(map[string]any, len(v))
			for k, e := range v {
				out[key(k)] = walk(e)
			}
			return out
		case map[any]any:
			out := make(map[string]any, len(v))
			for k, e := range v {
				out[key(k)] = walk(e)
			}
			return out
		default:
			return v
		}
	}
	return walk(tree)
}

// restored puts the placeholders back into the text of an error.
func restored(s, word string, found []string) string {
	t := tokens{word, found}
	for i, p := range found {
		s = strings.ReplaceAll(s, t.name(i, "end"), p)
		s = strings.ReplaceAll(s, t.name(i, "bare"), p)
	}
	return s
}
