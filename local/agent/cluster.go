package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// rootCAConfigMap is in every namespace and in every pod's token volume. It
// changes only with the cluster's certificate authority.
const rootCAConfigMap = "kube-root-ca.crt"

// cluster reads what pods refer to from the API server. Nothing is cached
// except the root certificate, so a pod always sees what was there before it.
type cluster struct {
	client kubernetes.Interface

	mu  sync.Mutex
	cas map[string]*corev1.ConfigMap
}

var _ volumeSource = (*cluster)(nil)

func (c *cluster) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	if name == rootCAConfigMap {
		c.mu.Lock()
		cm := c.cas[namespace]
		c.mu.Unlock()
		if cm != nil {
			return cm, nil
		}
	}
	cm, err := c.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if name == rootCAConfigMap {
		c.mu.Lock()
		c.cas[namespace] = cm
		c.mu.Unlock()
	}
	return cm, nil
}

func (c *cluster) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return c.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}

// defaultTokenSeconds is the life of a token whose projection does not say.
const defaultTokenSeconds = 3600

func (c *cluster) Token(ctx context.Context, pod *corev1.Pod, src *corev1.ServiceAccountTokenProjection) (string, time.Time, error) {
	seconds := int64(defaultTokenSeconds)
	if src.ExpirationSeconds != nil {
		seconds = *src.ExpirationSeconds
	}
	var audiences []string
	if src.Audience != "" {
		audiences = []string{src.Audience}
	}
	account := pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	req, err := c.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, account, &authv1.TokenRequest{
		Spec: authv1.TokenRequestSpec{
			Audiences:         audiences,
			ExpirationSeconds: &seconds,
			BoundObjectRef:    &authv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", time.Time{}, fmt.Errorf("requesting a token of service account %s/%s: %w", pod.Namespace, account, err)
	}
	return req.Status.Token, req.Status.ExpirationTimestamp.Time, nil
}

func (c *cluster) ClaimDir(ctx context.Context, namespace, name string) (string, error) {
	claim, err := c.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", &configError{err}
	}
	if err != nil {
		return "", err
	}
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return "", configErrorf("PersistentVolumeClaim %s/%s is not bound yet", namespace, name)
	}
	volume, err := c.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	src := volume.Spec.HostPath
	if src == nil {
		return "", configErrorf("PersistentVolume %s of claim %s/%s is not a hostPath volume; this node knows no other", volume.Name, namespace, name)
	}
	return src.Path, checkHostPath(src)
}
