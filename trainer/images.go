package trainer

import (
	"fmt"
	"path"
	"strings"
)

// Commands are what images run, by patterns of their names, as path.Match reads them.
// They are for machines that run no images.
type Commands map[string][]string

// ParseCommands reads pairs such as "ghcr.io/team/train:*=python3 /train.py". The words
// of a command are separated by spaces.
func ParseCommands(pairs []string) (Commands, error) {
	out := Commands{}
	for _, pair := range pairs {
		pattern, command, _ := strings.Cut(pair, "=")
		argv := strings.Fields(command)
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" || len(argv) == 0 {
			return nil, fmt.Errorf("%q does not say what an image runs: write IMAGE=COMMAND, as in ghcr.io/team/train:*=train", pair)
		}
		out[pattern] = argv
	}
	return out, nil
}

// of is the command of an image, or nil. Of several patterns the longest counts.
func (c Commands) of(image string) []string {
	best := ""
	for pattern := range c {
		if ok, err := path.Match(pattern, image); err == nil && ok && (len(pattern) > len(best) || len(pattern) == len(best) && pattern > best) {
			best = pattern
		}
	}
	return c[best]
}

// name gives the containers of a pod template that have no command that of their image.
func (c Commands) name(tpl map[string]any) {
	for _, key := range []string{"initContainers", "containers"} {
		list, _ := at(tpl, "spec", key).([]any)
		for _, v := range list {
			container, _ := v.(map[string]any)
			command, _ := container["command"].([]any)
			image, _ := container["image"].(string)
			if theirs := c.of(image); container != nil && len(command) == 0 && len(theirs) > 0 {
				container["command"] = words(theirs)
			}
		}
	}
}
