package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func TestAWebPageIsServedBelowItsBase(t *testing.T) {
	files := fstest.MapFS{
		"index.html":    {Data: []byte(`<html><base href="/" /><script src="./assets/app.js"></script></html>`)},
		"assets/app.js": {Data: []byte(strings.Repeat("draw(); ", 100))},
	}
	h := http.NewServeMux()
	h.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("answer to " + r.URL.Path)) })
	around := func(h http.Handler) http.Handler { return h }
	if err := MountWeb(h, files, "/vernier/", around); err != nil {
		t.Fatal(err)
	}
	get := func(method, path string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for name, c := range map[string]struct {
		got  *httptest.ResponseRecorder
		code int
		says string
	}{
		"the page":                              {get("GET", "/vernier/"), 200, `<base href="/vernier/" />`},
		"a place within the page":               {get("GET", "/vernier/experiments/default/tune"), 200, `<base href="/vernier/" />`},
		"a file":                                {get("GET", "/vernier/assets/app.js"), 200, "draw(); draw();"},
		"no file":                               {get("GET", "/vernier/assets/other.js"), 404, ""},
		"a file of the machine":                 {get("GET", "/vernier/..%2f..%2fetc/passwd.d"), 404, ""},
		"below a proxy that takes its part off": {get("GET", "/experiments/default/tune"), 200, `<base href="/vernier/" />`},
		"a file below such a proxy":             {get("GET", "/assets/app.js"), 200, "draw(); draw();"},
		"what else is served":                   {get("GET", "/vernier/api/list"), 200, "answer to /api/list"},
		"the base without its slash":            {get("GET", "/vernier"), 307, ""},
		"a page that takes no POST":             {get("POST", "/vernier/"), 405, ""},
		"what the browser has":                  {get("GET", "/vernier/", "If-None-Match", get("GET", "/vernier/").Header().Get("ETag")), 304, ""},
	} {
		if c.got.Code != c.code || !strings.Contains(c.got.Body.String(), c.says) {
			t.Errorf("%s: %d %s", name, c.got.Code, c.got.Body)
		}
		if c.code == 200 && c.says[:2] != "an" && !strings.Contains(c.got.Header().Get("Content-Security-Policy"), "default-src 'self'") {
			t.Errorf("%s: %v", name, c.got.Header())
		}
	}
	if packed := get("GET", "/vernier/assets/app.js", "Accept-Encoding", "gzip, br"); packed.Header().Get("Content-Encoding") != "gzip" || packed.Body.Len() > 100 {
		t.Errorf("compressed it has %d bytes: %v", packed.Body.Len(), packed.Header())
	}
	if err := MountWeb(http.NewServeMux(), fstest.MapFS{}, "/", around); err == nil {
		t.Error("a page without index.html is served")
	}
	for _, base := range []string{"", "vernier/", "/vernier", "//vernier/", "/a/../b/", `/"><script>/`, "/a b/"} {
		if err := MountWeb(http.NewServeMux(), files, base, around); err == nil {
			t.Errorf("a page is served below %q", base)
		}
	}
}

func TestOtherPagesDoNotReachAServerOfThisMachine(t *testing.T) {
	h := OnlyLocal(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, c := range map[string]struct {
		host, origin, site string
		code               int
	}{
		"a program":                            {host: "127.0.0.1:20443", code: 200},
		"the page itself":                      {host: "localhost:20443", origin: "http://localhost:20443", site: "same-origin", code: 200},
		"by IPv6":                              {host: "[::1]:20443", code: 200},
		"a name that points here":              {host: "evil.example:20443", origin: "http://evil.example:20443", site: "same-origin", code: 421},
		"a page elsewhere":                     {host: "127.0.0.1:20443", origin: "https://evil.example", site: "cross-site", code: 403},
		"a page of another port":               {host: "127.0.0.1:20443", origin: "http://127.0.0.1:8888", site: "same-site", code: 403},
		"a browser without Sec-Fetch-Site":     {host: "127.0.0.1:20443", origin: "http://127.0.0.1:8888", code: 403},
		"a name that only begins as localhost": {host: "localhost.evil.example", code: 421},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+c.host+"/", nil)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != c.code {
			t.Errorf("%s: %d, want %d", name, w.Code, c.code)
		}
	}
}
