package parse

import (
	"fmt"
	"strings"
)

// Formats of lines, as the API names them.
const (
	FormatText   = "TEXT"
	FormatJSON   = "JSON"
	FormatLogfmt = "LOGFMT"
)

// Formats lists the formats that NewLine knows.
func Formats() []string { return []string{FormatText, FormatJSON, FormatLogfmt} }

// NewLine returns a parser of the named metrics in lines of a format. Filters are
// for text alone.
func NewLine(format string, metrics, filters []string) (Line, error) {
	if len(filters) > 0 && format != FormatText {
		return nil, fmt.Errorf("filters are for the format %s alone, not for %s", FormatText, format)
	}
	switch format {
	case FormatText:
		return NewText(metrics, filters)
	case FormatJSON:
		return NewJSON(metrics), nil
	case FormatLogfmt:
		return NewLogfmt(metrics)
	}
	return nil, fmt.Errorf("there are no lines of the format %q; there are %s", format, strings.Join(Formats(), ", "))
}
