package main

import (
	"fmt"
	"regexp"
	"strings"
)

// Server-side apply reports fields that do not fit the schema as text, in the
// terms of its Go types, with no error type of its own.
var (
	schemaFault   = regexp.MustCompile(`(?m)\.([^\s:]+): (expected .*|field not declared in schema)$`)
	wrongType     = regexp.MustCompile(`^expected (\w+).*, got &value\.valueUnstructured\{Value:(?s)(.*)\}$`)
	isYAMLBoolean = regexp.MustCompile(`^(true|false)$`)
)

// schemaError puts such an error into the words of the file. It returns any other
// error as it is.
func schemaError(err error) error {
	if err == nil || !strings.Contains(err.Error(), "failed to create typed patch object") {
		return err
	}
	var faults []string
	for _, found := range schemaFault.FindAllStringSubmatch(err.Error(), -1) {
		faults = append(faults, found[1]+": "+schemaAdvice(found[2]))
	}
	if len(faults) == 0 {
		return invalidErrorf("%w", err)
	}
	return invalidErrorf("%s", strings.Join(faults, "; "))
}

func schemaAdvice(fault string) string {
	found := wrongType.FindStringSubmatch(fault)
	if found == nil {
		if strings.HasPrefix(fault, "field not declared") {
			return "there is no such field: it is misspelled or in the wrong place"
		}
		return fault
	}
	want, value := found[1], found[2]
	quoted := strings.HasPrefix(value, `"`)
	composite := strings.HasPrefix(value, "map[") || strings.HasPrefix(value, "[]")
	switch {
	case composite:
		return fmt.Sprintf("must be a %s, and the file has a map or a list there", want)
	case want == "string" && isYAMLBoolean.MatchString(value):
		return fmt.Sprintf("must be a string, and YAML reads the value as the boolean %s: put it in quotes (without them y, n, yes, no, on and off are booleans too)", value)
	case want == "string":
		return fmt.Sprintf(`must be a string: write "%s", with quotes`, value)
	case quoted && (want == "numeric" || want == "boolean"):
		return fmt.Sprintf("must be a %s: write %s, without quotes", map[string]string{"numeric": "number", "boolean": "boolean"}[want], strings.Trim(value, `"`))
	}
	return fmt.Sprintf("must be a %s, and is %s", want, value)
}
