// Package entrypoint finds out what an image runs when a container names no command, as
// its registry says.
package entrypoint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	containers "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/trainer"
)

const (
	// remembered is how many images are remembered, and keptFor for how long: a tag may
	// come to name another image.
	remembered = 1000
	keptFor    = 10 * time.Minute
	// patience with a registry, and how long one that has failed is left alone: the
	// trials of others wait meanwhile.
	patience = 5 * time.Second
	leftFor  = 30 * time.Second
)

// Resolver asks registries. Its methods may be called concurrently.
type Resolver struct {
	// Reader reads pull secrets and service accounts, as far as it may. It should have
	// no cache: a cache would hold all secrets.
	Reader client.Reader
	// Transport to registries. Default: that of go-containerregistry.
	Transport http.RoundTripper

	known *cache.LRUExpireCache // of known by image and pull secrets
}

type known struct {
	entrypoint, command []string
	err                 error
}

// New makes a Resolver.
func New(reader client.Reader) *Resolver {
	return &Resolver{Reader: reader, Transport: remote.DefaultTransport, known: cache.NewLRUExpireCache(remembered)}
}

// Of returns the entrypoint and the command of an image. An error says what to do, and is
// a trainer.ErrImage.
func (r *Resolver) Of(ctx context.Context, i trainer.Image) (entrypoint, command []string, err error) {
	key := strings.Join(slices.Concat([]string{i.Name, i.Namespace, i.ServiceAccount}, i.PullSecrets), " ")
	if have, ok := r.known.Get(key); ok {
		k := have.(known)
		return k.entrypoint, k.command, k.err
	}
	config, err := r.ask(ctx, i)
	if err != nil {
		if ctx.Err() == nil { // else the caller has left, not the registry failed
			r.known.Add(key, known{err: err}, leftFor)
		}
		return nil, nil, err
	}
	r.known.Add(key, known{entrypoint: config.Entrypoint, command: config.Cmd}, keptFor)
	return config.Entrypoint, config.Cmd, nil
}

// ask reads what an image is configured to do: of several platforms, that of the manager.
func (r *Resolver) ask(ctx context.Context, i trainer.Image) (containers.Config, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ref, err := name.ParseReference(i.Name)
	if err != nil {
		return containers.Config{}, fmt.Errorf("%w: %w", trainer.ErrImage, err)
	}
	keys, unread := r.keys(ctx, i)
	image, err := remote.Image(ref, remote.WithContext(ctx), remote.WithTransport(r.Transport), remote.WithAuthFromKeychain(keys),
		remote.WithPlatform(containers.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		return containers.Config{}, refused(i.Name, unread, err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return containers.Config{}, refused(i.Name, unread, err)
	}
	return file.Config, nil
}

// refused says why an image is not known, and which pull secrets could not be read.
func refused(image string, unread error, err error) error {
	text := fmt.Sprintf("what the image %s runs is not known, as its container has no command and its registry does not say", image)
	var answer *transport.Error
	if errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden) {
		text = fmt.Sprintf("the registry of the image %s wants other credentials to say what it runs, as its container has no command", image)
	}
	if unread != nil {
		err = fmt.Errorf("%w (and %w)", err, unread)
	}
	return fmt.Errorf("%w: %s: %w; write the program as command, or let the manager read the pull secrets (docs/install.md)", trainer.ErrImage, text, err)
}

// keys are the credentials of the pod's pull secrets, then of its service account's.
// What may not be read is left out, and said: the image may be public.
func (r *Resolver) keys(ctx context.Context, i trainer.Image) (keys keychain, unread error) {
	secrets := slices.Clone(i.PullSecrets)
	account := &corev1.ServiceAccount{}
	at := client.ObjectKey{Namespace: i.Namespace, Name: i.ServiceAccount}
	if at.Name == "" {
		at.Name = "default"
	}
	switch err := r.Reader.Get(ctx, at, account); {
	case err == nil:
		for _, s := range account.ImagePullSecrets {
			secrets = append(secrets, s.Name)
		}
	case i.ServiceAccount != "" && !apierrors.IsNotFound(err):
		unread = fmt.Errorf("read service account %s: %w", at, err)
	}
	for _, s := range secrets {
		secret := &corev1.Secret{}
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: s}, secret)
		if err == nil {
			err = keys.add(secret)
		}
		if err != nil {
			unread = errors.Join(unread, fmt.Errorf("pull secret %s/%s: %w", i.Namespace, s, err))
		}
	}
	return keys, unread
}

var _ authn.Keychain = keychain{}
