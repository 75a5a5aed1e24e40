// Command collector runs in the pods of trials. It measures: it keeps what a
// program prints (exec), and reports the points that it finds there, in files or
// in event files, or that are pushed to it (run).
//
// It stays small: it starts in milliseconds and takes a few megabytes.
package main

import (
	"os"

	"github.com/vernier-ml/vernier/collector/command"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(command.Main(version, os.Args[1:])) }
