package lines

import (
	"errors"
	"strings"
)

// SpaceFileError is all that is wrong with a space file, in its order. Find it
// with errors.As.
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

// faults are what is wrong, each once.
type faults []error

// add takes in an error, or the several that it is made of.
func (f *faults) add(err error) {
	if err == nil {
		return
	}
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		for _, one := range several.Unwrap() {
			f.add(one)
		}
		return
	}
	*f = append(*f, err)
}

// end is nil without faults.
func (f faults) end() error {
	if len(f) == 0 {
		return nil
	}
	return SpaceFileError(f)
}
