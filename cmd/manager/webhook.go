package main

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vernier-ml/vernier/controllers/trial"
	"github.com/vernier-ml/vernier/controllers/webhook"
)

// webhookConfiguration is the name of both configurations in config/webhook.
const webhookConfiguration = "vernier-webhook"

// announceEvery is how often the authority in the configurations is looked at:
// they may be applied again, without it, at any time.
const announceEvery = time.Minute

// webhookServer is the server of the admission webhook, or nil.
func webhookServer(o options, id identity) (ctrlwebhook.Server, error) {
	if o.webhookAddress == "" {
		return nil, nil
	}
	host, port, err := o.webhookHostPort()
	if err != nil {
		return nil, err
	}
	wo := ctrlwebhook.Options{Host: host, Port: port, CertDir: o.webhookCertDir}
	if o.webhookCertDir == "" {
		wo.TLSOpts = append(wo.TLSOpts, func(c *tls.Config) { c.GetCertificate = id.certificate })
	}
	return ctrlwebhook.NewServer(wo), nil
}

func addWebhooks(mgr manager.Manager, o options, id identity, direct client.Client, rules webhook.Rules) error {
	if o.webhookAddress == "" {
		return nil
	}
	if err := rules.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the admission webhook: %w", err)
	}
	mgr.GetWebhookServer().Register(trial.PodPath, &admission.Webhook{Handler: trial.NewPods(direct, reporting(o, id, direct))})
	if o.webhookCertDir != "" {
		return nil // the maker of the certificate has announced its authority
	}
	return mgr.Add(everyReplica(func(ctx context.Context) error {
		tick := time.NewTicker(announceEvery)
		defer tick.Stop()
		for {
			if err := announce(ctx, direct, id.ca); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "the API server may not reach the admission webhook, will try again", "after", announceEvery)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	}))
}

// announce tells the API server which authority has signed the webhook's
// certificate.
func announce(ctx context.Context, c client.Client, ca []byte) error {
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind(kind))
			if err := c.Get(ctx, client.ObjectKey{Name: webhookConfiguration}, u); err != nil {
				return err
			}
			before := u.DeepCopy()
			hooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
			for _, hook := range hooks {
				if err := unstructured.SetNestedField(hook.(map[string]any), base64.StdEncoding.EncodeToString(ca), "clientConfig", "caBundle"); err != nil {
					return err
				}
			}
			if err := unstructured.SetNestedSlice(u.Object, hooks, "webhooks"); err != nil || equality.Semantic.DeepEqual(before, u) {
				return err
			}
			return c.Update(ctx, u)
		})
		if err != nil {
			return fmt.Errorf("write the authority into the %s %s: %w", kind, webhookConfiguration, err)
		}
	}
	return nil
}
