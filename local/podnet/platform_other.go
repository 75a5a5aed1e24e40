//go:build !linux

package podnet

import (
	"context"
	"errors"
	"fmt"
	"log"
)

var errLinux = fmt.Errorf("networks of pods need Linux: %w", errors.ErrUnsupported)

// Serve is not possible here.
func Serve(context.Context, string, *log.Logger, func() error) error { return errLinux }

// TryNetwork says that this system has no network namespaces.
func TryNetwork() error { return errLinux }

// Probe says so too.
func Probe(context.Context, Options) error { return errLinux }

func launch(context.Context, Options) error { return errLinux }
