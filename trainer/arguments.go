package trainer

import (
	"regexp"
	"slices"
	"strings"
)

// flagPattern finds a flag with a placeholder as its value in a shell command line.
var flagPattern = regexp.MustCompile(`(^|\s)--?[A-Za-z0-9][\w.-]*[= ]["']?\$\{trialParameters\.([^{}]*)\}["']?(\s|$)`)

// bareFlag is a flag whose value may be the next argument. -1 is a number.
var bareFlag = regexp.MustCompile(`^(?:-[A-Za-z]|--[^=])[^=]*$`)

// activeArguments removes the arguments whose only placeholder is an inactive
// parameter, and the flag before such an argument if that is its value.
func (r *renderer) activeArguments(arguments []any) (out []any) {
	for _, v := range arguments {
		text, ok := v.(string)
		if b, isBare := v.(bare); isBare {
			text, ok = string(b), true
		}
		used := placeholderPattern.FindAllStringSubmatch(text, -1)
		switch {
		case !ok || !slices.ContainsFunc(used, func(m []string) bool { return r.inactive[m[1]] }):
			out = append(out, v)
		case strings.ContainsAny(text, " \t\n"):
			// Two flags may share the space between them, so each pass finds at
			// least one.
			for range used {
				text = flagPattern.ReplaceAllStringFunc(text, func(flag string) string {
					if m := flagPattern.FindStringSubmatch(flag); r.inactive[m[2]] {
						return m[1] + m[3]
					}
					return flag
				})
			}
			out = append(out, text)
		case len(used) > 1:
			out = append(out, v)
		case text == used[0][0] && len(out) > 0:
			if flag, _ := out[len(out)-1].(string); bareFlag.MatchString(flag) {
				out = out[:len(out)-1]
			}
		}
	}
	return out
}
