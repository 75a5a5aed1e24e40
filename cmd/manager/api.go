package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/server"
	"github.com/vernier-ml/vernier/server/api"
	"github.com/vernier-ml/vernier/web"
)

// mountAPI adds the programmatic API to the port of the report service. onPoints is to
// be told of new points, wherever they come from, and onUsage of what trials use.
func mountAPI(ctx context.Context, mux *http.ServeMux, mgr manager.Manager, o options, direct client.Client, points collector.Store, running controllers) (onPoints, onUsage func(collector.TrialID), err error) {
	others, provider, err := o.access.authenticators()
	if err != nil {
		return nil, nil, err
	}
	around, err := o.access.sameOrigin()
	if err != nil {
		return nil, nil, err
	}
	access := api.Reviews(direct, others...)
	if o.apiTokenFile != "" {
		around = server.OnlyLocal
		token, err := secretFromFile(o.apiTokenFile, "API token", randomToken)
		if err != nil {
			return nil, nil, err
		}
		access = api.OneToken(strings.TrimSpace(string(token)))
	}
	changes := &api.Changes{}
	if err := changes.Listen(ctx, mgr.GetCache(), running.index); err != nil {
		return nil, nil, err
	}
	onPoints = func(t collector.TrialID) {
		running.trials.Wake(t)
		changes.Points(t)
	}
	logs, err := podLogs(mgr.GetConfig())
	if err != nil {
		return nil, nil, err
	}
	config := api.Config{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Experiments: running.experiments, Changes: changes,
		Store: points, OnPoints: onPoints, OnEnd: running.trials.Announce, Logs: logs, EndedLogs: endedLogs(o.endedLogs), Volumes: volumesOf(o.volumes), Access: access, Version: version, Now: time.Now,
	}
	if o.access.impersonate {
		config.As = impersonator(mgr.GetConfig(), direct)
	}
	services := http.NewServeMux()
	for _, path := range api.Mount(services, config) {
		mux.Handle(path, around(services))
	}
	o.access.mountSignIn(services, provider, o.basePath)
	for _, name := range []string{"config", "token", "refresh", "logout"} {
		mux.Handle(signInPath+name, around(services))
	}
	return onPoints, changes.Points, server.MountWeb(mux, web.Files(), o.basePath, around)
}

// volumesOf are those of a node agent, if its root is known.
func volumesOf(root string) api.Volumes {
	if root == "" {
		return api.Volumes{}
	}
	return api.Volumes{Claims: filepath.Join(root, "claims"), Pods: filepath.Join(root, "pods")}
}

// podLogs reads logs of pods for as long as they last.
func podLogs(config *rest.Config) (api.Logs, error) {
	endless := rest.CopyConfig(config)
	endless.Timeout = 0
	clients, err := kubernetes.NewForConfig(endless)
	if err != nil {
		return nil, fmt.Errorf("set up the reading of logs: %w", err)
	}
	return func(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		return clients.CoreV1().Pods(namespace).GetLogs(pod, o).Stream(ctx)
	}, nil
}
