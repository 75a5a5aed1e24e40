package main

import (
	"syscall"
	"testing"
)

func TestSIGINTOfTheAgentLeavesThePods(t *testing.T) {
	ctx, down, stop := agentSignals(t.Context())
	defer stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	select {
	case <-down:
		t.Error("its pods end")
	default:
	}
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-down
}
