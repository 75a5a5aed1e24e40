package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/vernier-ml/vernier/controllers/katib"
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

// rulesOf are what experiments are admitted by.
func rulesOf(mgr manager.Manager, o options, present *katib.Presence) webhook.Rules {
	return webhook.Rules{Reader: mgr.GetAPIReader(), Binary: o.collectorBinary, Katib: present}
}

// addWebhook adds the admission of experiments to mgr.
func addWebhook(mgr manager.Manager, o options, id identity, direct client.Client, rules webhook.Rules) error {
	if o.webhookAddress == "" {
		return nil
	}
	if err := rules.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the admission webhook: %w", err)
	}
	if o.webhookCertDir != "" {
		return nil // whoever made the certificate has announced its authority
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
	key := client.ObjectKey{Name: webhookConfiguration}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var mutating admissionv1.MutatingWebhookConfiguration
		if err := c.Get(ctx, key, &mutating); err != nil {
			return fmt.Errorf("read the mutating webhook configuration %s: %w", key.Name, err)
		}
		before := mutating.DeepCopy()
		for i := range mutating.Webhooks {
			mutating.Webhooks[i].ClientConfig.CABundle = ca
		}
		if !equality.Semantic.DeepEqual(before, &mutating) {
			if err := c.Update(ctx, &mutating); err != nil {
				return fmt.Errorf("write the mutating webhook configuration %s: %w", key.Name, err)
			}
		}
		var validating admissionv1.ValidatingWebhookConfiguration
		if err := c.Get(ctx, key, &validating); err != nil {
			return fmt.Errorf("read the validating webhook configuration %s: %w", key.Name, err)
		}
		was := validating.DeepCopy()
		for i := range validating.Webhooks {
			validating.Webhooks[i].ClientConfig.CABundle = ca
		}
		if equality.Semantic.DeepEqual(was, &validating) {
			return nil
		}
		if err := c.Update(ctx, &validating); err != nil {
			return fmt.Errorf("write the validating webhook configuration %s: %w", key.Name, err)
		}
		return nil
	})
}
