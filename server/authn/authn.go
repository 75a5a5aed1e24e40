// Package authn finds out who makes a request to the dashboard and the API of a cluster
// where the token is not the cluster's: by a proxy in front of it (proxy.go), or by ID
// tokens of an OpenID provider (package oidc).
package authn

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// Authenticator finds the user who makes a request. ok is false where it knows none, and
// others may be asked. The error is ErrRefused where none may.
type Authenticator interface {
	Authenticate(ctx context.Context, r *http.Request) (user authenticationv1.UserInfo, ok bool, err error)
}

// ErrRefused is that of credentials that are wrong. What it is wrapped in says why, to
// the one who sent them.
var ErrRefused = errors.New("the credentials are refused")

// Refuse is an ErrRefused that says why.
func Refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// Bearer is the token in the header Authorization, "" for none.
func Bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// reserved begins the names that Kubernetes gives to its own users and groups.
const reserved = "system:"

// authenticated is the group of all users who are known, as the API server adds it.
const authenticated = "system:authenticated"

// User is one that a provider outside the cluster vouches for, who may not name users of
// Kubernetes itself: such a user is refused, and such groups are left out. So are names
// with spaces around them, which the headers of impersonation would lose.
func User(name string, groups []string) (authenticationv1.UserInfo, error) {
	bad := func(n string) bool { return n == "" || strings.HasPrefix(n, reserved) || strings.TrimSpace(n) != n }
	if bad(name) {
		return authenticationv1.UserInfo{}, Refuse("%q is no name of a user", name)
	}
	groups = slices.DeleteFunc(slices.Clone(groups), bad)
	return authenticationv1.UserInfo{Username: name, Groups: append(groups, authenticated)}, nil
}
