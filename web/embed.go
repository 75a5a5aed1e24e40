// Package web is the dashboard. make web builds dist from the sources beside it.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html"
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

// Shared is one HTML file with the dashboard's pages over a snapshot, a serialized
// vernier.v1.Snapshot. It loads nothing, and its policy lets it run its own program
// only: what a snapshot says cannot become one, since it is compressed and in base64.
func Shared(title string, snapshot []byte) ([]byte, error) {
	style, err := fs.ReadFile(dist, "dist/assets/index.css")
	if err != nil {
		return nil, fmt.Errorf("read the style of shared pages: %w", err)
	}
	program, err := fs.ReadFile(dist, "dist/assets/shared.js")
	if err != nil {
		return nil, fmt.Errorf("read the program of shared pages: %w", err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(snapshot); err != nil {
		return nil, fmt.Errorf("compress the snapshot: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress the snapshot: %w", err)
	}
	// What ends a script element, or opens a comment in it, is a string in a program.
	program = bytes.ReplaceAll(bytes.ReplaceAll(bytes.TrimSpace(program), []byte("</script"), []byte(`<\/script`)), []byte("<!--"), []byte(`<\!--`))
	sum := sha256.Sum256(program)
	page := fmt.Appendf(nil, sharedHead, base64.StdEncoding.EncodeToString(sum[:]), html.EscapeString(title), style)
	page = base64.StdEncoding.AppendEncode(page, packed.Bytes())
	page = append(page, "</script>\n<script type=\"module\">"...)
	return append(append(page, program...), "</script>\n</body>\n</html>\n"...), nil
}

const sharedHead = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-%s'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s</title>
<style>%s</style>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript, which it brings with it.</noscript>
<script type="application/octet-stream" id="snapshot">`
