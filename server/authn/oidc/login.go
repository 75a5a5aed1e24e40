package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/vernier-ml/vernier/server/authn"
)

const (
	// refreshCookie keeps what a new token is asked for with from scripts, and goes to
	// the login alone.
	refreshCookie = "__Secure-vernier-refresh"
	maxCookie     = 4000
	maxBody       = 16 << 10
	// atOnce bounds the calls of the provider: everybody may try to log in.
	atOnce = 16
)

// Login is what a browser needs to begin a login.
type Login struct {
	Endpoint string   `json:"endpoint"`
	ClientID string   `json:"clientId"`
	Scopes   []string `json:"scopes"`
}

// Login says how a browser begins a login (RFC 6749, section 4.1, with RFC 7636).
func (p *Provider) Login(ctx context.Context) (Login, error) {
	d, err := p.discover(ctx)
	if err != nil {
		return Login{}, err
	}
	return Login{d.oauth.Endpoint.AuthURL, p.ClientID, p.Scopes}, nil
}

// Mount adds token, refresh and logout to mux, below base, such as "/auth/". path is what
// that is to browsers.
func (p *Provider) Mount(mux *http.ServeMux, base, path string) {
	slots := make(chan struct{}, atOnce)
	add := func(name string, answer func(http.ResponseWriter, *http.Request) (*session, error)) {
		mux.HandleFunc("POST "+base+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			// A form of another page cannot send this type.
			if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
				refuse(w, http.StatusUnsupportedMediaType, "send JSON")
				return
			}
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			default:
				refuse(w, http.StatusServiceUnavailable, "too many logins at once: try again")
				return
			}
			s, err := answer(w, r)
			var said *oauth2.RetrieveError
			switch {
			case errors.As(err, &said) && refuses(said.Response.StatusCode):
				refuse(w, http.StatusUnauthorized, "the OpenID provider refuses: "+said.ErrorCode+" "+said.ErrorDescription)
			case errors.Is(err, authn.ErrRefused):
				refuse(w, http.StatusUnauthorized, err.Error())
			case err != nil:
				slog.WarnContext(r.Context(), "a login failed", "error", err)
				refuse(w, http.StatusServiceUnavailable, "the OpenID provider cannot be reached: try again, or see the log of the manager")
			default:
				p.keep(w, path, s)
			}
		})
	}
	add("token", p.exchange)
	add("refresh", p.refresh)
	add("logout", func(http.ResponseWriter, *http.Request) (*session, error) { return &session{}, nil })
}

// refuses says whether a provider that answers so would not answer otherwise later.
func refuses(code int) bool {
	return code < http.StatusInternalServerError && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout && code != http.StatusTooEarly
}

// session is a token that a browser got, and what it gets the next one with.
type session struct {
	Token   string `json:"token"`
	Expires int64  `json:"expires"` // in seconds of Unix
	refresh string
}

// keep answers with the token. The other one becomes a cookie, or none.
func (p *Provider) keep(w http.ResponseWriter, path string, s *session) {
	cookie := &http.Cookie{Name: refreshCookie, Path: path, HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode}
	cookie.Value = base64.RawURLEncoding.EncodeToString([]byte(s.refresh))
	if cookie.Value == "" || len(cookie.Value) > maxCookie {
		cookie.Value, cookie.MaxAge = "", -1
	}
	http.SetCookie(w, cookie)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s) // a browser that went away needs no answer
}

func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": why})
}

// exchange makes a session of the code that ends a login.
func (p *Provider) exchange(_ http.ResponseWriter, r *http.Request) (*session, error) {
	var asks struct{ Code, Verifier, Redirect, Nonce string }
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(body, &asks)
	}
	if err != nil || asks.Code == "" || asks.Verifier == "" || asks.Nonce == "" {
		return nil, authn.Refuse("send code, verifier, redirect and nonce")
	}
	d, err := p.discover(r.Context())
	if err != nil {
		return nil, err
	}
	config := d.oauth
	config.RedirectURL = asks.Redirect // the provider knows those that are right
	token, err := config.Exchange(oidc.ClientContext(r.Context(), p.client), asks.Code, oauth2.VerifierOption(asks.Verifier))
	if err != nil {
		return nil, fmt.Errorf("exchange the code of a login: %w", err)
	}
	return p.session(r.Context(), token, asks.Nonce)
}

// refresh makes a new session of the cookie of the last one.
func (p *Provider) refresh(_ http.ResponseWriter, r *http.Request) (*session, error) {
	cookie, err := r.Cookie(refreshCookie)
	if err != nil {
		return nil, authn.Refuse("there is no session to go on with: sign in")
	}
	refresh, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || len(refresh) == 0 {
		return nil, authn.Refuse("there is no session to go on with: sign in")
	}
	d, err := p.discover(r.Context())
	if err != nil {
		return nil, err
	}
	config := d.oauth
	old := &oauth2.Token{RefreshToken: string(refresh), Expiry: time.Unix(1, 0)}
	token, err := config.TokenSource(oidc.ClientContext(r.Context(), p.client), old).Token()
	if err != nil {
		return nil, fmt.Errorf("refresh a session: %w", err)
	}
	return p.session(r.Context(), token, "")
}

func (p *Provider) session(ctx context.Context, token *oauth2.Token, nonce string) (*session, error) {
	id, ok := token.Extra("id_token").(string)
	if !ok {
		return nil, authn.Refuse("the OpenID provider gave no ID token: sign in")
	}
	_, until, err := p.verify(ctx, id, nonce)
	if err != nil {
		return nil, err
	}
	return &session{id, until.Unix(), token.RefreshToken}, nil
}
