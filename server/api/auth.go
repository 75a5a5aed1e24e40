package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Access says who calls and what they may do.
type Access interface {
	// Authenticate finds the user that a bearer token stands for; ok is false when
	// it stands for none.
	Authenticate(ctx context.Context, token string) (user authenticationv1.UserInfo, ok bool, err error)
	// Allowed says whether a user may do something.
	Allowed(ctx context.Context, user authenticationv1.UserInfo, what authorizationv1.ResourceAttributes) (bool, error)
}

// OneToken is the Access of a single user on one machine: who knows the token may do
// everything.
func OneToken(token string) Access { return oneToken(sha256.Sum256([]byte(token))) }

type oneToken [sha256.Size]byte

func (t oneToken) Authenticate(_ context.Context, token string) (authenticationv1.UserInfo, bool, error) {
	sum := sha256.Sum256([]byte(token))
	return authenticationv1.UserInfo{Username: "local"}, subtle.ConstantTimeCompare(sum[:], t[:]) == 1, nil
}

func (oneToken) Allowed(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
	return true, nil
}

// How long answers of the API server are believed. A token or right that was taken away
// works no longer than this, and in a stream for rightsAgain more.
const (
	knownFor   = time.Minute
	unknownFor = 5 * time.Second
	allowedFor = 10 * time.Second
	deniedFor  = 2 * time.Second
	// maxAnswers bounds how many are remembered of each kind.
	maxAnswers = 4096
)

// Reviews is the Access of a cluster: its API server says who a token stands for
// (TokenReview), and whether its roles allow a call (SubjectAccessReview). c is not
// cached.
func Reviews(c client.Client) Access {
	return &reviews{c, cache.NewLRUExpireCache(maxAnswers), cache.NewLRUExpireCache(maxAnswers)}
}

type reviews struct {
	client          client.Client
	tokens, answers *cache.LRUExpireCache
}

func (r *reviews) Authenticate(ctx context.Context, token string) (authenticationv1.UserInfo, bool, error) {
	key := sha256.Sum256([]byte(token))
	if have, ok := r.tokens.Get(key); ok {
		status, _ := have.(authenticationv1.TokenReviewStatus)
		return status.User, status.Authenticated, nil
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := r.client.Create(ctx, review); err != nil {
		return authenticationv1.UserInfo{}, false, fmt.Errorf("review a token: %w", err)
	}
	keep := unknownFor
	if review.Status.Authenticated {
		keep = knownFor
	}
	r.tokens.Add(key, review.Status, keep)
	return review.Status.User, review.Status.Authenticated, nil
}

func (r *reviews) Allowed(ctx context.Context, user authenticationv1.UserInfo, what authorizationv1.ResourceAttributes) (bool, error) {
	key := fmt.Sprintf("%+v %+v", user, what)
	if have, ok := r.answers.Get(key); ok {
		allowed, _ := have.(bool)
		return allowed, nil
	}
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra, ResourceAttributes: &what,
	}}
	if err := r.client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("review the access of %s: %w", user.Username, err)
	}
	keep := deniedFor
	if review.Status.Allowed {
		keep = allowedFor
	}
	r.answers.Add(key, review.Status.Allowed, keep)
	return review.Status.Allowed, nil
}

// The keys of the caller and its token in a request's context.
type (
	userKey  struct{}
	tokenKey struct{}
)

func caller(ctx context.Context) authenticationv1.UserInfo {
	user, _ := ctx.Value(userKey{}).(authenticationv1.UserInfo) // guard has put it there
	return user
}

// guard refuses calls without a valid token, and does not read their bodies.
func (s *service) guard(next http.Handler) http.Handler {
	faults := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			token = ""
		}
		ctx, err := s.identify(context.WithValue(r.Context(), tokenKey{}, token))
		if err != nil {
			_ = faults.Write(w, r, err) // a client that went away needs no answer
			return
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// identify adds the caller that the token in ctx stands for now.
func (s *service) identify(ctx context.Context) (context.Context, error) {
	token, _ := ctx.Value(tokenKey{}).(string)
	var user authenticationv1.UserInfo
	var known bool
	var err error
	if token != "" {
		user, known, err = s.Access.Authenticate(ctx, token)
	}
	switch {
	case err != nil:
		return nil, explain(ctx, err)
	case !known:
		return nil, fault(connect.CodeUnauthenticated, ReasonUnauthenticated, "send a token that is valid here, as the header Authorization: Bearer TOKEN", "it is not known who calls")
	}
	return context.WithValue(ctx, userKey{}, user), nil
}

// allow holds that the caller may do something with experiments or trials. resource is
// experiments, trials or trials/lease. Trials are not named: one answer is good for all
// of a namespace.
func (s *service) allow(ctx context.Context, verb, resource string, in place) error {
	resource, sub, _ := strings.Cut(resource, "/")
	user, name := caller(ctx), ""
	if resource == "experiments" {
		name = in.experiment
	}
	ok, err := s.Access.Allowed(ctx, user, authorizationv1.ResourceAttributes{
		Namespace: in.namespace, Verb: verb, Group: "kubeflow.org", Version: "v1beta1", Resource: resource, Subresource: sub, Name: name,
	})
	switch {
	case err != nil:
		return explain(ctx, err)
	case !ok:
		return fault(connect.CodePermissionDenied, ReasonForbidden, "have a role bound that allows it, such as vernier-edit",
			"%s may not %s %s in namespace %s", user.Username, verb, strings.TrimSuffix(resource+"/"+sub, "/"), in.namespace)
	}
	return nil
}

// mayRead says whether the caller may read what Kubernetes itself keeps in a namespace:
// pods, their logs, events.
func (s *service) mayRead(ctx context.Context, namespace, verb, resource, sub string) (bool, error) {
	ok, err := s.Access.Allowed(ctx, caller(ctx), authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: verb, Version: "v1", Resource: resource, Subresource: sub,
	})
	return ok, explain(ctx, err)
}
