// Package web is the dashboard. make web builds dist from the sources beside it.
package web

import (
	"embed"
	"io/fs"
)

//go:embed dist
var dist embed.FS

// Files are what a browser loads: index.html and what it names.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // dist is a folder of this package
	}
	return files
}
