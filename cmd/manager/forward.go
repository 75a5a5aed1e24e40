package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// dialer connects to the pods of algorithms in the embedded mode, where the machine
// does not reach their networks: as kubectl port-forward does. On a cluster their
// Services have names.
func dialer(o options, mgr manager.Manager) func(ctx context.Context, namespace, service string, port int) (net.Conn, error) {
	if !o.embedded {
		return nil
	}
	return func(ctx context.Context, namespace, service string, port int) (net.Conn, error) {
		var pods corev1.PodList
		err := mgr.GetAPIReader().List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{v1beta1.LabelDeployment: service})
		if err != nil {
			return nil, fmt.Errorf("look for the pod of %s: %w", service, err)
		}
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				return forward(mgr.GetConfig(), namespace, p.Name, port)
			}
		}
		return nil, fmt.Errorf("no pod of %s/%s runs (%s)", namespace, service, whyNot(pods.Items))
	}
}

// whyNot says why none of the pods runs.
func whyNot(pods []corev1.Pod) string {
	for _, p := range pods {
		for _, s := range p.Status.ContainerStatuses {
			if w := s.State.Waiting; w != nil && w.Message != "" {
				return w.Message
			}
		}
		if p.Status.Message != "" {
			return p.Status.Message
		}
	}
	return fmt.Sprintf("of %d", len(pods))
}

// forward connects to a port of a pod.
func forward(cfg *rest.Config, namespace, pod string, port int) (net.Conn, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.GroupVersion, cfg.APIPath, cfg.NegotiatedSerializer = &corev1.SchemeGroupVersion, "/api", scheme.Codecs.WithoutConversion()
	core, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	url := core.Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	conn, _, err := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url).Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, fmt.Errorf("connect to pod %s/%s: %w", namespace, pod, err)
	}
	header := http.Header{}
	header.Set(corev1.PortHeader, strconv.Itoa(port))
	header.Set(corev1.PortForwardRequestIDHeader, "0")
	header.Set(corev1.StreamType, corev1.StreamTypeError)
	faults, err := conn.CreateStream(header)
	if err == nil {
		header.Set(corev1.StreamType, corev1.StreamTypeData)
		var data httpstream.Stream
		if data, err = conn.CreateStream(header); err == nil {
			c := &forwarded{Stream: data, conn: conn, pod: namespace + "/" + pod, port: port}
			go c.watch(faults)
			return c, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("connect to port %d of pod %s/%s: %w", port, namespace, pod, err), conn.Close())
}

// forwarded is a connection to a port of a pod.
type forwarded struct {
	httpstream.Stream

	conn httpstream.Connection
	pod  string
	port int
}

// watch closes the connection when the node says that it has failed.
func (f *forwarded) watch(faults io.Reader) {
	if text, err := io.ReadAll(faults); err != nil || len(text) > 0 {
		_ = f.conn.Close() // who reads is told
	}
}

// Close implements net.Conn.
func (f *forwarded) Close() error { return f.conn.Close() }

// LocalAddr implements net.Conn.
func (f *forwarded) LocalAddr() net.Addr { return forwardedAddress("manager") }

// RemoteAddr implements net.Conn.
func (f *forwarded) RemoteAddr() net.Addr {
	return forwardedAddress(fmt.Sprintf("%s:%d", f.pod, f.port))
}

// SetDeadline implements net.Conn. HTTP/2 ends its calls without deadlines.
func (f *forwarded) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (f *forwarded) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (f *forwarded) SetWriteDeadline(time.Time) error { return nil }

type forwardedAddress string

func (forwardedAddress) Network() string { return "portforward" }

func (a forwardedAddress) String() string { return string(a) }
