// Command controlplane is etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler in one binary. It runs the component that its own name
// (argv[0]) or its first argument names.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	etcd "go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	args := os.Args
	if !isComponent(filepath.Base(args[0])) && len(args) > 1 {
		args = args[1:]
	}
	os.Exit(run(args))
}

func isComponent(name string) bool {
	switch name {
	case "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler":
		return true
	}
	return false
}

func run(args []string) int {
	os.Args = args
	switch filepath.Base(args[0]) {
	case "etcd":
		etcd.Main(args)
		return 0
	case "kube-apiserver":
		return cli.Run(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		return cli.Run(kcm.NewControllerManagerCommand())
	case "kube-scheduler":
		return cli.Run(scheduler.NewSchedulerCommand())
	}
	fmt.Fprintln(os.Stderr, "controlplane: name a component: etcd, kube-apiserver, kube-controller-manager or kube-scheduler")
	return 2
}
