//go:build unix && !linux

package main

func smallPages() error { return nil }
