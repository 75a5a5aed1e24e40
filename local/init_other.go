//go:build !linux

package local

import "errors"

// RunAsInit is for containers, which are Linux.
func RunAsInit() (exitCode int, err error) { return 0, errors.ErrUnsupported }
