package lines

import (
	"errors"
	"strings"
)

// SpaceFileError is all that is wrong with a space file, in its order and each
// once. Find it with errors.As.
type SpaceFileError []error

// Error has a line for each fault.
func (e SpaceFileError) Error() string {
	lines := make([]string, len(e))
	for i, fault := range e {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the single faults.
func (e SpaceFileError) Unwrap() []error { return e }

// add takes in an error, or the several that it is made of.
func (e *SpaceFileError) add(err error) {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		for _, one := range several.Unwrap() {
			e.add(one)
		}
	} else if err != nil {
		*e = append(*e, err)
	}
}
