package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

const (
	probeInterval = 5 * time.Second
	// probePatience outlasts a restart of the server.
	probePatience = 20 * time.Second
)

var errServerBack = errors.New("the server answers again")

// awaitLoss returns when the server has not answered for a while, which the watches of
// informers never say, or, with errServerBack, when it answers again: they would wait up
// to a minute before their next attempt. It returns nil when ctx ends.
func (s *session) awaitLoss(ctx context.Context, key types.NamespacedName) error {
	answered, silent := time.Now(), false
	for pause(ctx, probeInterval) == nil {
		err := s.probe(ctx, key)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && silent:
			return errServerBack
		case err == nil:
			answered = time.Now()
			continue
		}
		if silent = true; time.Since(answered) >= probePatience {
			return &exitError{exitUnreachable, fmt.Errorf("the server cannot be reached: %w; %s", err, s.revive())}
		}
	}
	return nil
}

// probe is an error when the server does not answer; a refusal is an answer, but for that
// of a gateway which does not reach the server.
func (s *session) probe(ctx context.Context, key types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, probeInterval)
	defer cancel()
	err := s.client.Get(ctx, key, &v1beta1.Experiment{})
	if answer := apierrors.APIStatus(nil); errors.As(err, &answer) {
		switch answer.Status().Code {
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return err
		}
		return nil
	}
	return err
}

// revive is how to go on when the server is gone.
func (s *session) revive() string {
	if s.home == "" {
		return "when it is back, the same command goes on"
	}
	return "vernier up starts it again, and then the same command goes on"
}
