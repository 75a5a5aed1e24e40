package server

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"path"
	"regexp"
	"strings"
)

// page is a file of a web page, compressed once.
type page struct {
	plain, packed []byte
	kind, tag     string
}

// basePath is what a page can be served below: names that need no escaping.
var basePath = regexp.MustCompile(`^/([A-Za-z0-9_~-][A-Za-z0-9._~-]*/)*$`)

// MountWeb serves the files of a web page on the mux. Paths without a dot that name no
// file are the page's own: they get index.html, whose <base href="/"> becomes base,
// where browsers find the page: "/", or what a proxy in front adds. Such a proxy may take
// its part off the path or leave it: all that the mux serves, it serves below base too.
func MountWeb(mux *http.ServeMux, files fs.FS, base string, around func(http.Handler) http.Handler) error {
	if !basePath.MatchString(base) {
		return fmt.Errorf("serve the web page below %q: give a path that begins and ends with a slash, such as /vernier/", base)
	}
	page, err := newWebHandler(files, base)
	if err != nil {
		return err
	}
	mux.Handle("/", around(page))
	if base != "/" {
		mux.Handle(base, http.StripPrefix(strings.TrimSuffix(base, "/"), mux))
	}
	return nil
}

func newWebHandler(files fs.FS, base string) (http.Handler, error) {
	pages := map[string]page{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if name == "index.html" {
			text = bytes.Replace(text, []byte(`<base href="/"`), fmt.Appendf(nil, `<base href=%q`, base), 1)
		}
		pages[name], err = newPage(name, text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the web page: %w", err)
	}
	if _, ok := pages["index.html"]; !ok {
		return nil, fmt.Errorf("read the web page: there is no index.html")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		p, found := pages[name]
		if !found && !strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ".") {
			p, found = pages["index.html"], true
		}
		switch {
		case !found:
			http.NotFound(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "this is a page: get it", http.StatusMethodNotAllowed)
		default:
			p.serve(w, r)
		}
	}), nil
}

func newPage(name string, text []byte) (page, error) {
	sum := sha256.Sum256(text)
	p := page{plain: text, kind: mime.TypeByExtension(path.Ext(name)), tag: `"` + hex.EncodeToString(sum[:12]) + `"`}
	if p.kind == "" {
		p.kind = http.DetectContentType(text)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(text); err != nil {
		return p, err
	}
	if err := z.Close(); err != nil {
		return p, err
	}
	if packed.Len() < len(text) {
		p.packed = packed.Bytes()
	}
	return p, nil
}

// contentPolicy lets a page load what is served beside it and nothing else, so that a
// name or a log with markup in it cannot run or send anything.
const contentPolicy = "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; worker-src 'self' blob:; " +
	"object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'"

func (p page) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache") // asked for again, and answered by the tag
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", p.tag)
	h.Set("Content-Type", p.kind)
	if r.Header.Get("If-None-Match") == p.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := p.plain
	if p.packed != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body = p.packed
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", fmt.Sprint(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // a browser that went away needs no answer
	}
}

// OnlyLocal refuses what a browser sends for another page: requests across origins, and
// those whose Host is not this machine, as when a name of an attacker is made to point
// here.
func OnlyLocal(next http.Handler) http.Handler {
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		if host != "localhost" && !strings.HasSuffix(host, ".localhost") && !ip.IsLoopback() {
			http.Error(w, "this server is for its own machine: call it by 127.0.0.1 or localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	}))
}
