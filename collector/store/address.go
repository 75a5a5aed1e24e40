package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/collector"
)

// Open opens the store at address, for instance
// "sqlite:/var/lib/vernier/points.db". An unknown scheme is an error that lists the
// known ones. "env:NAME" and "file:PATH" stand for an address that is in an
// environment variable or in the first line of a file, where a password is not seen
// in lists of processes. No error shows a password.
func Open(ctx context.Context, address string) (collector.Store, error) {
	address, err := resolve(address)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	scheme, rest, found := strings.Cut(address, ":")
	for _, d := range Drivers() {
		if found && d.Scheme == scheme {
			s, err := d.Open(ctx, rest)
			if err != nil {
				return nil, fmt.Errorf("open store %s: %w", Redact(address), err)
			}
			return s, nil
		}
	}
	return nil, fmt.Errorf("open store: %w", errUnknownForm())
}

func errUnknownForm() error {
	var forms []string
	for _, d := range Drivers() {
		forms = append(forms, d.Form)
	}
	return fmt.Errorf("the URL begins with none of the known forms; write one of: %s, env:NAME, file:PATH", strings.Join(forms, ", "))
}

// OpenExisting is Open, and an error where that would make a new file.
func OpenExisting(ctx context.Context, address string) (collector.Store, error) {
	resolved, err := resolve(address)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if path, ok := strings.CutPrefix(resolved, "sqlite:"); ok {
		if _, err := os.Stat(strings.TrimPrefix(path, "//")); err != nil {
			return nil, fmt.Errorf("open store %s: %w", address, err)
		}
	}
	return Open(ctx, resolved)
}

// resolve follows env: and file:, once.
func resolve(address string) (string, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch scheme {
	case "env":
		value := os.Getenv(rest)
		if value == "" {
			return "", fmt.Errorf("the environment variable %q, which should hold the URL of the store, is empty", rest)
		}
		return value, nil
	case "file":
		text, err := os.ReadFile(strings.TrimPrefix(rest, "//"))
		if err != nil {
			return "", fmt.Errorf("read the URL of the store: %w", err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		if line = strings.TrimSpace(line); line == "" {
			return "", fmt.Errorf("the first line of %s, which should hold the URL of the store, is empty", rest)
		}
		return line, nil
	}
	return address, nil
}

// CheckArgument refuses an address with a password: arguments of a command are seen
// in lists of processes.
func CheckArgument(address string) error {
	if Redact(address) == address {
		return nil
	}
	scheme, _, _ := strings.Cut(address, ":")
	if !slices.ContainsFunc(Drivers(), func(d Driver) bool { return d.Scheme == scheme }) {
		return fmt.Errorf("%s: %w", Redact(address), errUnknownForm())
	}
	return fmt.Errorf("%s: a password on the command line is seen by everybody on the machine: "+
		"put the URL into an environment variable, say VERNIER_STORE, and write env:VERNIER_STORE, or into a file and write file:PATH", Redact(address))
}

// Redact returns an address without its password, for messages. Of an address that
// cannot be read it leaves the scheme.
func Redact(address string) string {
	scheme, rest, found := strings.Cut(address, ":")
	if !found || !strings.HasPrefix(rest, "//") || scheme == "sqlite" || scheme == "file" {
		switch {
		case scheme == "sqlite" || scheme == "file" || scheme == "env" || scheme == "memory":
			return address
		case found || strings.Contains(address, "@"):
			return scheme + ":..."
		}
		return address
	}
	u, err := url.Parse(address)
	if err != nil {
		return scheme + "://..."
	}
	query := u.Query()
	_, secret := u.User.Password()
	for name := range query {
		if strings.HasSuffix(strings.ToLower(name), "password") { // sslpassword too
			query.Set(name, "xxxxx")
			u.RawQuery, secret = query.Encode(), true
		}
	}
	if !secret {
		return address
	}
	return u.Redacted()
}

// parseURL reads the URL of an engine with a server. Its error does not repeat the
// URL.
func parseURL(scheme, rest string) (u *url.URL, password string, err error) {
	u, err = url.Parse(scheme + ":" + rest)
	if err != nil || !strings.HasPrefix(rest, "//") {
		return nil, "", fmt.Errorf("the URL cannot be read: write %s://USER:PASSWORD@HOST:PORT/DATABASE, "+
			"and characters other than letters, digits and -._~ in the password as %%XX", scheme)
	}
	password, _ = u.User.Password()
	return u, password, nil
}

// hide removes a password from an error. An error that does not show it stays what
// it is.
func hide(err error, secret string) error {
	if err == nil || secret == "" {
		return err
	}
	text := err.Error()
	hidden := strings.NewReplacer(secret, "xxxxx", url.QueryEscape(secret), "xxxxx", url.PathEscape(secret), "xxxxx").Replace(text)
	if hidden == text {
		return err
	}
	return errors.New(hidden)
}
