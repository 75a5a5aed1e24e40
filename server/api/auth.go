package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/server/authn"
)

// Access says who calls and what they may do.
type Access interface {
	authn.Authenticator
	// Allowed says whether a user may do something.
	Allowed(ctx context.Context, user authenticationv1.UserInfo, what authorizationv1.ResourceAttributes) (bool, error)
}

// OneToken is the Access of a single user on one machine: who knows the token may do
// everything.
func OneToken(token string) Access { return oneToken(sha256.Sum256([]byte(token))) }

type oneToken [sha256.Size]byte

func (t oneToken) Authenticate(_ context.Context, r *http.Request) (authenticationv1.UserInfo, bool, error) {
	sum := sha256.Sum256([]byte(authn.Bearer(r)))
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
// (TokenReview), and whether its roles allow a call (SubjectAccessReview). others are
// asked first who calls. c is not cached.
func Reviews(c client.Client, others ...authn.Authenticator) Access {
	return &reviews{c, others, cache.NewLRUExpireCache(maxAnswers), cache.NewLRUExpireCache(maxAnswers)}
}

type reviews struct {
	client          client.Client
	others          []authn.Authenticator
	tokens, answers *cache.LRUExpireCache
}

func (r *reviews) Authenticate(ctx context.Context, request *http.Request) (authenticationv1.UserInfo, bool, error) {
	for _, other := range r.others {
		if user, ok, err := other.Authenticate(ctx, request); ok || err != nil {
			if by, noted := ctx.Value(byKey{}).(*authn.Authenticator); noted {
				*by = other
			}
			return user, ok, err
		}
	}
	token := authn.Bearer(request)
	if token == "" {
		return authenticationv1.UserInfo{}, false, nil
	}
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

// The keys of the caller, its request, and the one of Reviews' others that knew the
// caller (an *authn.Authenticator, nil for none) in a context.
type (
	userKey    struct{}
	requestKey struct{}
	byKey      struct{}
)

func caller(ctx context.Context) authenticationv1.UserInfo {
	user, _ := ctx.Value(userKey{}).(authenticationv1.UserInfo) // guard has put it there
	return user
}

// guard refuses calls of users who are not known, and does not read their bodies.
func (s *service) guard(next http.Handler) http.Handler {
	faults := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, err := s.identify(context.WithValue(r.Context(), requestKey{}, r))
		if err != nil {
			_ = faults.Write(w, r, err) // a client that went away needs no answer
			return
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// identify adds the caller whom the request in ctx is of now.
func (s *service) identify(ctx context.Context) (context.Context, error) {
	r, _ := ctx.Value(requestKey{}).(*http.Request) // guard has put it there
	ctx = context.WithValue(ctx, byKey{}, new(authn.Authenticator))
	user, known, err := s.Access.Authenticate(ctx, r)
	switch {
	case errors.Is(err, authn.ErrRefused):
		return nil, fault(connect.CodeUnauthenticated, ReasonUnauthenticated, "sign in again, or have the operator look at the options of the manager", "%w", err)
	case err != nil:
		return nil, explain(ctx, err)
	case !known:
		return nil, fault(connect.CodeUnauthenticated, ReasonUnauthenticated, "send a token that is valid here, as the header Authorization: Bearer TOKEN", "it is not known who calls")
	}
	return context.WithValue(ctx, userKey{}, user), nil
}

// as writes experiments for the caller.
func (s *service) as(ctx context.Context) (client.Writer, error) {
	if s.As == nil {
		return s.Client, nil
	}
	return s.As(caller(ctx))
}

// proxied says whether a proxy has named the caller. It would not be asked again about
// its user as long as a stream lasts, whatever else it passes on.
func proxied(ctx context.Context) bool {
	by, ok := ctx.Value(byKey{}).(*authn.Authenticator)
	if ok {
		_, ok = (*by).(*authn.Proxy)
	}
	return ok
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
