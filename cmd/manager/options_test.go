package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsOfTheStore(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string // part of the error; empty: none
	}{
		"the default":                       {nil, ""},
		"a server without a password":       {[]string{"--store=postgres://u@host/db"}, ""},
		"a variable that has the URL":       {[]string{"--store=env:VERNIER_STORE"}, ""},
		"a password is seen by everybody":   {[]string{"--store=postgres://u:s3cret@host/db"}, "env:VERNIER_STORE"},
		"so is one that cannot be read":     {[]string{"--store=mysql://u:s3cret/@host/db"}, "env:VERNIER_STORE"},
		"a retention":                       {[]string{"--store-max-age=720h", "--store-max-experiments=200"}, ""},
		"an age that is not known":          {[]string{"--store-max-age=1m"}, "2h0m0s"},
		"an age before now":                 {[]string{"--store-max-age=-1h"}, "--store-max-age"},
		"fewer experiments than none":       {[]string{"--store-max-experiments=-1"}, "--store-max-experiments"},
		"no limit of a trial's points":      {[]string{"--store-max-points=0"}, ""},
		"fewer points than none":            {[]string{"--store-max-points=-1"}, "--store-max-points"},
		"an age that is not a duration":     {[]string{"--store-max-age=30d"}, "store-max-age"},
		"a collector without limits":        {[]string{"--collector-cpu-limit=0"}, "--collector-cpu-limit 0"},
		"a request above the limit":         {[]string{"--collector-memory-request=1Gi"}, "--collector-memory-request 1Gi"},
		"a collector that is mounted":       {[]string{"--collector-mount=auto"}, ""},
		"mounted at an unknown time":        {[]string{"--collector-mount=yes"}, "--collector-mount"},
		"experiments that are not a number": {[]string{"--store-max-experiments=many"}, "store-max-experiments"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parseFlags(tc.args, io.Discard)
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cret")):
				t.Errorf("error %v does not say %q", err, tc.want)
			}
		})
	}
	o, err := parseFlags([]string{"--store-max-age=720h", "--store-max-experiments=200"}, io.Discard)
	if diff := cmp.Diff([]any{720 * time.Hour, 200}, []any{o.retention.MaxAge, o.retention.MaxExperiments}); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestListsOfOptions(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("the-secret-of-the-proxy"), 0o600); err != nil {
		t.Fatal(err)
	}
	proxy := []string{"--requestheader-username-headers=user", "--requestheader-secret=file:" + secret}
	hosts := func(o options) []string { return o.alerts.hosts }
	tests := map[string]struct {
		args []string
		of   func(options) []string
		want []string
	}{
		"no hosts":            {[]string{"--alert-hosts="}, hosts, nil},
		"hosts":               {[]string{"--alert-hosts=a.example, b.example"}, hosts, []string{"a.example", "b.example"}},
		"no proxy":            {[]string{"--requestheader-username-headers="}, func(o options) []string { return o.access.proxy.UserHeaders }, nil},
		"a proxy":             {proxy, func(o options) []string { return o.access.proxy.UserHeaders }, []string{"user"}},
		"any name of proxy":   {append(proxy, "--requestheader-allowed-names="), func(o options) []string { return o.access.proxy.Names }, nil},
		"no header of groups": {append(proxy, "--requestheader-group-headers="), func(o options) []string { return o.access.proxy.GroupHeaders }, nil},
		"the default algorithms": {[]string{"--oidc-issuer-url=https://idp.example", "--oidc-client-id=x", "--oidc-signing-algs="},
			func(o options) []string { return o.access.oidc.SigningAlgs }, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o, err := parseFlags(tc.args, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.of(o)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
