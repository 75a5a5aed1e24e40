//go:build unix && !linux

package command

func smallPages() error { return nil }
