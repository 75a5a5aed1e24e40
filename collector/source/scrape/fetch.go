package scrape

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"syscall"
	"time"
)

// Limits of one scrape. Prometheus' own is 10 s and no size.
const (
	// maxPage bounds a page, in bytes after decompression.
	maxPage = 4 << 20
	// maxPageLine bounds one line of it.
	maxPageLine = 64 << 10
	// scrapeTimeout bounds one scrape, lastTimeout by default the one after the
	// program's end, dialTimeout the time to connect.
	scrapeTimeout = 10 * time.Second
	lastTimeout   = 2 * time.Second
	dialTimeout   = 2 * time.Second
)

// acceptedPages are the formats that are asked for. Text comes first: its pages
// are the smaller.
const acceptedPages = "text/plain;version=0.0.4;q=1,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"

// unreachableError says that there was no answer.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }

// newClient returns a client that asks only the endpoint: no
// proxy, no redirect. It keeps no connection open between scrapes, since a
// server with one thread would then answer no one else.
func newClient() *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: 64 << 10,
			TLSClientConfig:        &tls.Config{InsecureSkipVerify: true}, // the pod's own endpoint; see Config.URL
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, network, addr)
				if err != nil {
					return nil, &unreachableError{err}
				}
				return conn, nil
			},
		},
	}
}

// fetch reads the endpoint into the page.
func (r *run) fetch(ctx context.Context, last bool) error {
	timeout := scrapeTimeout
	if last {
		timeout = min(timeout, cmp.Or(r.cfg.LastPatience, lastTimeout))
	}
	r.page.begin(false)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.cfg.URL, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", acceptedPages)
	request.Header.Set("User-Agent", "vernier-collector")
	for name, values := range r.cfg.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
		if http.CanonicalHeaderKey(name) == "Host" && len(values) > 0 {
			request.Host = values[0]
		}
	}
	response, err := r.client.Do(request)
	if err != nil {
		return gone(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s; it must answer 200 itself, redirects are not followed", r.cfg.URL, response.Status)
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")) // without one it is text
	r.page.begin(kind == "application/openmetrics-text")
	if err := r.page.readAll(response.Body); err != nil {
		return fmt.Errorf("%s: %w", r.cfg.URL, gone(err))
	}
	return nil
}

// gone marks the errors of a connection to a program that has just ended.
func gone(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return &unreachableError{err}
	}
	return err
}

// readAll reads the lines of a page. What came before an error counts.
func (p *page) readAll(body io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(body, maxPage+1))
	p.size = int64(min(len(text), maxPage))
	for line := range bytes.Lines(text[:p.size]) {
		whole, ended := bytes.CutSuffix(line, []byte("\n"))
		switch {
		case !ended && err == nil && len(text) <= maxPage:
			err = errors.New("the page breaks off within a line; a last line must end with a line feed")
		case !ended: // the rest is missing
		case len(whole) > maxPageLine:
			if whole[0] != '#' && len(p.errs) < maxPageErrors {
				p.errs = append(p.errs, fmt.Errorf("%.60q: the line is longer than %d bytes", whole[:60], maxPageLine))
			}
		default:
			p.take(bytes.TrimSuffix(whole, []byte("\r")))
		}
	}
	if len(text) > maxPage {
		err = fmt.Errorf("the page is larger than %d bytes; only its beginning was read", maxPage)
	}
	p.broken++
	if err == nil {
		p.broken = 0
	}
	return err
}

// Names returns the names that an endpoint shows, and the size of its page in
// bytes.
func Names(ctx context.Context, url string) (names []string, size int64, err error) {
	r := &run{cfg: Config{URL: url}, page: newPage(nil), client: newClient()}
	defer r.client.CloseIdleConnections()
	if err := r.fetch(ctx, false); err != nil {
		return nil, 0, err
	}
	return r.page.seen(), r.page.size, nil
}
