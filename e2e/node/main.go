// Command node is what a Kubernetes node runs besides containerd, and the
// cluster's DNS: kubelet, kube-proxy and CoreDNS in one binary. It runs the
// component that its own name (argv[0]) or its first argument names. Tests use
// it, see node.sh; the product does not.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	"k8s.io/component-base/cli"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
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
	case "kubelet", "kube-proxy", "coredns":
		return true
	}
	return false
}

func run(args []string) int {
	os.Args = args
	switch filepath.Base(args[0]) {
	case "kubelet":
		return cli.Run(kubelet.NewKubeletCommand(context.Background()))
	case "kube-proxy":
		return cli.Run(proxy.NewProxyCommand())
	case "coredns":
		dnsserver.Directives = []string{"bind", "errors", "kubernetes"}
		coremain.Run()
		return 0
	}
	fmt.Fprintln(os.Stderr, "node: name a component: kubelet, kube-proxy or coredns")
	return 2
}
