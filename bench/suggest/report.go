package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/report"
)

func reportCommand(_ context.Context, args []string) error {
	var files words
	var o report.Options
	set := flag.NewFlagSet("report", flag.ContinueOnError)
	set.Var(&files, "in", "files of results")
	set.StringVar(&o.Page, "page", filepath.Join("docs", "benchmarks.md"), "page to write into")
	set.StringVar(&o.Folder, "folder", filepath.Join("docs", "benchmarks"), "folder for plots and the table of all tasks")
	set.StringVar(&o.Reference, "reference", "auto", "our method that the others are compared with; where it did not play, the best of ours")
	set.StringVar(&o.Pages, "pages", filepath.Join("docs", "algorithms"), "folder with a page for each algorithm, to write into; empty: none")
	if err := parse(set, args); err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("name the results: -in results.jsonl")
	}
	records, err := play.ReadRecords(files)
	if err != nil {
		return err
	}
	o.Preamble = preamble(records)
	return report.Write(records, o)
}

func preamble(records []play.Record) string {
	var ours []string
	for _, r := range records {
		if !slices.Contains([]byte(r.Version), '=') && !slices.Contains(ours, r.Version) {
			ours = append(ours, r.Version)
		}
	}
	return fmt.Sprintf("Written %s on %d cores (%s/%s), %d games; ours: %v.", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, len(records), ours)
}
