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
	wrongType     = regexp.MustCompile(`(?s)^expected (\w+).*?, got (?:&value\.valueUnstructured\{Value:|&\{)?(.*?)\}?$`)
	isYAMLBoolean = regexp.MustCompile(`^(true|false)$`)
)

// isSchemaFault recognizes them: the API server calls them internal errors.
func isSchemaFault(err error) bool {
	return err != nil && strings.Contains(err.Error(), "failed to create typed patch object")
}

// schemaError puts such an error into the words of the file. It returns any other
// error as it is.
func schemaError(err error) error {
	if !isSchemaFault(err) {
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
		return "there is no such field: it is misspelled or in the wrong place"
	}
	want, value := found[1], found[2]
	switch {
	case strings.HasPrefix(value, "map[") || strings.HasPrefix(value, "["):
		return fmt.Sprintf("must be a %s, and the file has a map or a list there", strings.Replace(want, "numeric", "number", 1))
	case want == "string" && isYAMLBoolean.MatchString(value):
		return fmt.Sprintf("must be a string, and YAML reads the value as the boolean %s: put it in quotes (without them y, n, yes, no, on and off are booleans too)", value)
	case want == "string":
		return fmt.Sprintf(`must be a string: write "%s", with quotes`, value)
	case want == "numeric" && value == "bool":
		return "must be a number, and YAML reads the value as a boolean"
	case want == "numeric": // the value is not told
		return "must be a number: write it without quotes"
	case want == "boolean":
		return "must be true or false, without quotes"
	}
	return fmt.Sprintf("must be a %s, and is %s", want, value)
}
