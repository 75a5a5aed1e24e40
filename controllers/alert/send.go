package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Message is what a webhook gets, as JSON.
type Message struct {
	// ID is the same when a message is sent again. It is the header Idempotency-Key too.
	ID         string    `json:"id"`
	Reason     string    `json:"reason"`
	Severity   string    `json:"severity"` // info, warning
	Namespace  string    `json:"namespace"`
	Experiment string    `json:"experiment"`
	Trial      string    `json:"trial,omitempty"`
	Message    string    `json:"message"`
	Time       time.Time `json:"time"`
	// URL of the experiment in the dashboard, where that is known.
	URL string `json:"url,omitempty"`
}

// refused is an error that will be the same if the message is sent again.
type refused struct{ error }

const (
	sendTimeout = 10 * time.Second
	anyHost     = "*"
)

// host is a place that messages may be sent to.
type host struct{ scheme, name, port string }

// Sender sends messages, to hosts that the operator allows: the addresses come from users,
// and what answers them is inside the cluster's network.
type Sender struct {
	allowed []host
	// client reaches hosts that are named; strict those that are only not excluded.
	client, strict *http.Client
}

// NewSender allows hosts: NAME, *.DOMAIN or *, with a port where it is not 443 (":*": any),
// and with http:// before it where there is no TLS. By * alone, no private address is
// reached.
func NewSender(hosts []string) (*Sender, error) {
	s := &Sender{}
	for _, text := range hosts {
		h, ok := hostOf(text)
		if !ok {
			return nil, fmt.Errorf("%q is no host: give NAME, *.DOMAIN or *, with :PORT and http:// where needed", text)
		}
		s.allowed = append(s.allowed, h)
	}
	s.client, s.strict = newClient(nil), newClient(onlyPublic)
	return s, nil
}

func hostOf(text string) (h host, ok bool) {
	h = host{scheme: "https", port: "443", name: text}
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		h.scheme, h.name = scheme, rest
	}
	if h.scheme == "http" {
		h.port = "80"
	}
	if i := strings.LastIndex(h.name, ":"); i > strings.LastIndex(h.name, "]") {
		h.name, h.port = h.name[:i], h.name[i+1:]
	}
	if n, err := strconv.ParseUint(h.port, 10, 16); h.port != "*" && (err != nil || n == 0) {
		return h, false
	}
	if inner, begins := strings.CutPrefix(h.name, "["); begins { // an address of IPv6
		address, ends := strings.CutSuffix(inner, "]")
		_, err := netip.ParseAddr(address)
		h.name = address
		return h, ends && err == nil && (h.scheme == "https" || h.scheme == "http")
	}
	bad := h.name == "" || strings.ContainsAny(h.name, "/@ :[]") || strings.Contains(strings.TrimPrefix(h.name, "*"), "*")
	return h, !bad && (h.scheme == "https" || h.scheme == "http")
}

func newClient(control func(network, address string, _ syscall.RawConn) error) *http.Client {
	transport, _ := http.DefaultTransport.(*http.Transport)
	transport = transport.Clone()
	transport.DialContext = (&net.Dialer{Timeout: sendTimeout, Control: control}).DialContext
	transport.DisableKeepAlives = true // messages are rare
	if control != nil {
		transport.Proxy = nil // it would look at the address of the proxy
	}
	return &http.Client{
		Transport: transport, Timeout: sendTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // elsewhere was not allowed
	}
}

// onlyPublic looks at an address after its name was resolved.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	ip := at.Addr().Unmap()
	if err != nil || !ip.IsGlobalUnicast() || ip.IsPrivate() || slices.ContainsFunc(inner, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return refused{fmt.Errorf("%s is no public address: the operator can allow the host by name", address)}
	}
	return nil
}

// inner are ranges that the standard library counts as public, and that are not: shared
// by carriers (RFC 6598) and clusters, and IPv4 addresses within IPv6 (RFC 6052, 3056).
var inner = []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("64:ff9b::/32"), netip.MustParsePrefix("2002::/16")}

// clientOf is the client for a URL; nil where it is not allowed.
func (s *Sender) clientOf(u *url.URL) (found *http.Client) {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	for _, h := range s.allowed {
		domain, wild := strings.CutPrefix(h.name, anyHost)
		name := strings.ToLower(u.Hostname())
		fits := name == strings.ToLower(h.name) || wild && strings.HasSuffix(name, strings.ToLower(domain)) && name != strings.TrimPrefix(domain, ".")
		if h.scheme != u.Scheme || h.port != "*" && h.port != port || !fits {
			continue
		}
		if h.name != anyHost {
			return s.client
		}
		found = s.strict
	}
	return found
}

// send sends a message once. Its errors do not have the URL, which is a secret.
func (s *Sender) send(ctx context.Context, to receiver, m Message) error {
	if to.err != nil {
		return refused{to.err}
	}
	c := s.clientOf(to.url)
	if c == nil {
		return refused{fmt.Errorf("the manager may not send to %s://%s: the operator can allow it by --alert-hosts", to.url.Scheme, to.url.Host)}
	}
	var body any = m
	if to.slack {
		body = map[string]string{"text": m.text()}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return refused{fmt.Errorf("write the message: %w", err)}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.url.String(), bytes.NewReader(text))
	if err != nil {
		return refused{errors.New("its URL cannot be called")}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", m.ID)
	r.Header.Set("User-Agent", "vernier")
	got, err := c.Do(r)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return fmt.Errorf("%s does not answer: %w", to.url.Host, err)
	}
	defer func() { _ = got.Body.Close() }()
	switch code := got.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code == http.StatusTooEarly:
		return fmt.Errorf("%s answers %s", to.url.Host, got.Status)
	default:
		return refused{fmt.Errorf("%s answers %s", to.url.Host, got.Status)}
	}
}

// text is the message as Slack writes text; what it holds is no markup.
func (m Message) text() string {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
	sign, name := ":information_source:", m.Namespace+"/"+m.Experiment
	if m.Severity == "warning" {
		sign = ":warning:"
	}
	if m.URL != "" {
		name = "<" + escape(m.URL) + "|" + escape(name) + ">"
	}
	return fmt.Sprintf("%s *%s* %s: %s", sign, m.Reason, name, escape(m.Message))
}

// receiver is an entry of the Secret.
type receiver struct {
	name  string
	url   *url.URL
	slack bool
	// err says what is wrong with the entry.
	err error
}

// maxReceivers bounds the entries of a Secret that are used.
const maxReceivers = 10

// receivers reads the entries of a Secret; chosen are the names of those that are meant.
func receivers(data map[string][]byte, chosen []string) (out []receiver) {
	for _, name := range chosen {
		value, ok := data[name]
		r := receiver{name: name}
		text, slack := strings.CutPrefix(strings.TrimSpace(string(value)), "slack+")
		u, err := url.Parse(text)
		switch {
		case len(out) == maxReceivers:
			r.err = fmt.Errorf("no more than %d receivers are told: this one is not, nor what follows it by name", maxReceivers)
			return append(out, r)
		case !ok:
			r.err = errors.New("the Secret has no such entry")
		case err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http":
			r.err = errors.New("the entry is no URL such as https://hooks.example.com/x, or slack+https://hooks.slack.com/x for the form of Slack")
		default:
			r.url, r.slack = u, slack || u.Host == "hooks.slack.com"
		}
		out = append(out, r)
	}
	return out
}
