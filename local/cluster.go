package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/config"
)

// prepareCluster applies what the other components need: the custom resource
// definitions, our namespace, and the webhooks of the manager.
func (s *supervisor) prepareCluster(ctx context.Context) error {
	if err := s.applyCRDs(ctx); err != nil {
		return err
	}
	for _, name := range []string{"default", systemNamespace} {
		_, err := s.probe.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return s.applyWebhooks(ctx)
}

func (s *supervisor) applyCRDs(ctx context.Context) error {
	client, err := apiextensionsclient.NewForConfig(s.probe.config)
	if err != nil {
		return err
	}
	const folder = "crd/bases"
	entries, err := config.CRDs.ReadDir(folder)
	if err != nil {
		return err
	}
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	for _, e := range entries {
		data, err := config.CRDs.ReadFile(folder + "/" + e.Name())
		if err != nil {
			return err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &crd); err != nil {
			return fmt.Errorf("%s: %w", e.Name(), err)
		}
		if _, err := crds.Create(ctx, &crd, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
			before, err := crds.Get(ctx, crd.Name, metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("read CRD %s: %w", crd.Name, err)
			}
			before.Spec = crd.Spec
			if _, err := crds.Update(ctx, before, metav1.UpdateOptions{}); err != nil {
				return fmt.Errorf("update CRD %s: %w", crd.Name, err)
			}
		} else if err != nil {
			return fmt.Errorf("create CRD %s: %w", crd.Name, err)
		}
	}
	for _, e := range entries {
		name := crdName(e.Name())
		err := s.awaitReady(ctx, component{name: "kube-apiserver", ready: func(ctx context.Context) error {
			crd, err := crds.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return established(crd)
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// crdName is the object's name for a file that controller-gen named:
// kubeflow.org_experiments.yaml holds experiments.kubeflow.org.
func crdName(file string) string {
	base := file[:len(file)-len(filepath.Ext(file))]
	for i := range base {
		if base[i] == '_' {
			return base[i+1:] + "." + base[:i]
		}
	}
	return base
}

func established(crd *apiextensionsv1.CustomResourceDefinition) error {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("CRD %s is not established", crd.Name)
}

// The paths of the manager's webhooks.
const (
	mutatePath   = "/mutate-kubeflow-org-v1beta1-experiment"
	validatePath = "/validate-kubeflow-org-v1beta1-experiment"
)

func (s *supervisor) applyWebhooks(ctx context.Context) error {
	authority, err := os.ReadFile(filepath.Join(s.home.pki(), "ca.crt"))
	if err != nil {
		return err
	}
	clientConfig := func(path string) admissionv1.WebhookClientConfig {
		url := "https://" + address(s.ports.Webhook) + path
		return admissionv1.WebhookClientConfig{URL: &url, CABundle: authority}
	}
	rules := []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule: admissionv1.Rule{
			APIGroups: []string{v1beta1.GroupVersion.Group}, APIVersions: []string{v1beta1.GroupVersion.Version}, Resources: []string{"experiments"},
		},
	}}
	fail, none, seconds := admissionv1.Fail, admissionv1.SideEffectClassNone, int32(10)
	mutating := &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "vernier.ml"},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: "defaulter.experiment.vernier.ml", ClientConfig: clientConfig(mutatePath), Rules: rules,
			FailurePolicy: &fail, SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1"},
		}},
	}
	validating := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "vernier.ml"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "validator.experiment.vernier.ml", ClientConfig: clientConfig(validatePath), Rules: rules,
			FailurePolicy: &fail, SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1"},
		}},
	}
	api := s.probe.client.AdmissionregistrationV1()
	if _, err := api.MutatingWebhookConfigurations().Create(ctx, mutating, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		before, err := api.MutatingWebhookConfigurations().Get(ctx, mutating.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read the mutating webhook: %w", err)
		}
		before.Webhooks = mutating.Webhooks
		if _, err := api.MutatingWebhookConfigurations().Update(ctx, before, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("update the mutating webhook: %w", err)
		}
	} else if err != nil {
		return fmt.Errorf("create the mutating webhook: %w", err)
	}
	if _, err := api.ValidatingWebhookConfigurations().Create(ctx, validating, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		before, err := api.ValidatingWebhookConfigurations().Get(ctx, validating.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read the validating webhook: %w", err)
		}
		before.Webhooks = validating.Webhooks
		if _, err := api.ValidatingWebhookConfigurations().Update(ctx, before, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("update the validating webhook: %w", err)
		}
	} else if err != nil {
		return fmt.Errorf("create the validating webhook: %w", err)
	}
	return nil
}

// stopLimit bounds the time that pods are given to end when the instance stops.
const stopLimit = 40 * time.Second
