package agent

import (
	"context"
	"fmt"
	"maps"
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
	cas    sync.Map // the data of rootCAConfigMap, by namespace
}

var _ volumeSource = (*cluster)(nil)

func (c *cluster) Data(ctx context.Context, kind objectKind, namespace, name string) (map[string][]byte, error) {
	if kind == secret {
		s, err := c.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return s.Data, nil
	}
	if held, ok := c.cas.Load(namespace); ok && name == rootCAConfigMap {
		return held.(map[string][]byte), nil
	}
	cm, err := c.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{}
	for k, v := range cm.Data {
		data[k] = []byte(v)
	}
	maps.Copy(data, cm.BinaryData)
	if name == rootCAConfigMap {
		c.cas.Store(namespace, data)
	}
	return data, nil
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
