package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRedact(t *testing.T) {
	for address, want := range map[string]string{
		"sqlite:/var/lib/points.db":                 "sqlite:/var/lib/points.db",
		"sqlite:///a@b:c.db":                        "sqlite:///a@b:c.db",
		"memory:":                                   "memory:",
		"env:VERNIER_STORE":                         "env:VERNIER_STORE",
		"file:/etc/store":                           "file:/etc/store",
		"postgres://u@host/db":                      "postgres://u@host/db",
		"postgres://u:secret@host/db":               "postgres://u:xxxxx@host/db",
		"postgres://u:@host/db":                     "postgres://u:xxxxx@host/db",
		"mysql://u:s%2Fe@host:3306/db?tls=true":     "mysql://u:xxxxx@host:3306/db?tls=true",
		"postgres://host/db?user=u&password=secret": "postgres://host/db?password=xxxxx&user=u",
		"postgres://u:se/cret@host/db":              "postgres://...",
		"postgres://u:se%cret@host/db":              "postgres://...",
		"postgres:u:secret@host/db":                 "postgres:...",
		"u:secret@tcp(host)/db":                     "u:...",
	} {
		got := Redact(address)
		if got != want || strings.Contains(got, "cret") {
			t.Errorf("%s becomes %s, want %s", address, got, want)
		}
		if refused := CheckArgument(address) != nil; refused != (want != address) {
			t.Errorf("%s: refused as an argument: %v", address, refused)
		}
	}
	if err := CheckArgument("postgres://u:secret@host/db"); strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "env:") {
		t.Errorf("error %v", err)
	}
	if err := CheckArgument("postgre:u:secret"); strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "postgres://USER") {
		t.Errorf("an unknown form: %v", err)
	}
}

func TestAnAddressMayBeElsewhere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "url")
	if err := errors.Join(os.WriteFile(path, []byte("memory:\nmore\n"), 0o600), os.WriteFile(path+"-empty", []byte("\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("VERNIER_TEST_STORE", "memory:")
	t.Setenv("VERNIER_TEST_AGAIN", "env:VERNIER_TEST_STORE")
	tests := map[string]struct{ address, want string }{
		"a variable":             {"env:VERNIER_TEST_STORE", ""},
		"a file":                 {"file:" + path, ""},
		"a file as a URL":        {"file://" + path, ""},
		"a variable that is not": {"env:VERNIER_TEST_NONE", "VERNIER_TEST_NONE"},
		"a file that is not":     {"file:" + path + "-none", "no such file"},
		"an empty file":          {"file:" + path + "-empty", "is empty"},
		"not twice":              {"env:VERNIER_TEST_AGAIN", "none of the known forms"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), tc.address)
			switch {
			case tc.want == "" && err != nil:
				t.Fatal(err)
			case tc.want == "":
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			case err == nil || !strings.Contains(err.Error(), tc.want):
				t.Errorf("error %v does not say %q", err, tc.want)
			}
		})
	}
}

func TestOpenExistingMakesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "points.db")
	if _, err := OpenExisting(t.Context(), "sqlite:"+path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
	if err := openTest(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	s, err := OpenExisting(t.Context(), "sqlite://"+path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// No server listens there, or the URL is wrong: what fails must not tell the password.
func TestErrorsOfOpeningShowNoPassword(t *testing.T) {
	const secret = "s3cret:/@?#% pass"
	const quoted = "s3cret%3A%2F%40%3F%23%25%20pass"
	for name, address := range map[string]string{
		"no server, postgres":         "postgres://u:" + quoted + "@127.0.0.1:1/db",
		"no server, mysql":            "mysql://u:" + quoted + "@127.0.0.1:1/db",
		"not quoted, postgres":        "postgres://u:" + secret + "@127.0.0.1:1/db",
		"not quoted, mysql":           "mysql://u:" + secret + "@127.0.0.1:1/db",
		"as a parameter":              "postgres://127.0.0.1:1/db?user=u&password=" + quoted,
		"an unknown mode of TLS":      "postgres://u:" + quoted + "@127.0.0.1:1/db?sslmode=none",
		"an unknown parameter, mysql": "mysql://u:" + quoted + "@127.0.0.1:1/db?tls=none",
		"no database, mysql":          "mysql://u:" + quoted + "@127.0.0.1:1/",
		"no slashes":                  "postgres:u:" + quoted + "@host/db",
		"an unknown scheme":           "oracle://u:" + quoted + "@host/db",
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), address)
			if err == nil {
				t.Fatal(s.Close(), "no error")
			}
			if strings.Contains(err.Error(), "s3cret") || len(err.Error()) > 600 {
				t.Errorf("error %q", err)
			}
		})
	}
}

func TestHideKeepsErrorsThatTellNothing(t *testing.T) {
	plain := errors.New("connection refused")
	if got := hide(plain, "secret"); !errors.Is(got, plain) {
		t.Errorf("error %v", got)
	}
	if d := cmp.Diff("user u, password xxxxx or xxxxx", hide(errors.New("user u, password a b or a+b"), "a b").Error()); d != "" {
		t.Error(d)
	}
}
