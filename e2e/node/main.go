// Command node is what a Kubernetes node runs besides containerd, and the
// cluster's DNS: kubelet, kube-proxy and CoreDNS in one binary. It runs the
// component that its first argument names. Tests use it, see node.sh; the product
// does not.
package main

import (
	"context"
	"fmt"
	"os"

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
	os.Args = os.Args[1:]
	component := ""
	if len(os.Args) > 0 {
		component = os.Args[0]
	}
	switch component {
	case "kubelet":
		os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background())))
	case "kube-proxy":
		os.Exit(cli.Run(proxy.NewProxyCommand()))
	case "coredns":
		dnsserver.Directives = []string{"bind", "errors", "kubernetes"}
		coremain.Run()
	default:
		fmt.Fprintln(os.Stderr, "node: name a component: kubelet, kube-proxy or coredns")
		os.Exit(2)
	}
}
