package main

import (
	"flag"
	"fmt"
	"net/url"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/vernier-ml/vernier/controllers/alert"
	"github.com/vernier-ml/vernier/controllers/index"
)

// alerts are the options about alerts: where they may be sent, none if there are no hosts,
// and the URL of the dashboard to which they lead.
type alerts struct {
	hosts     []string
	dashboard string
}

func (a *alerts) flags(f *flag.FlagSet) {
	list(f, &a.hosts, "alert-hosts", "`hosts`, between commas, to which alerts of experiments may be sent: NAME, *.DOMAIN, or * for all that have public addresses; with :PORT and http:// where needed; empty: none is sent")
	f.StringVar(&a.dashboard, "dashboard-url", "", "`URL` of the dashboard for people, ending with /, to which alerts lead; empty: they have no link")
}

func (a *alerts) check() error {
	if _, err := alert.NewSender(a.hosts); err != nil {
		return fmt.Errorf("--alert-hosts: %w", err)
	}
	if u, err := url.Parse(a.dashboard); a.dashboard != "" && (err != nil || u.Host == "" || !strings.HasSuffix(u.Path, "/")) {
		return fmt.Errorf("--dashboard-url %q: give a URL that ends with /", a.dashboard)
	}
	return nil
}

// addAlerts adds the controller that sends alerts, if there is where to.
func addAlerts(mgr manager.Manager, w wiring, trials *index.Trials) error {
	if len(w.alerts.hosts) == 0 {
		return nil
	}
	sender, err := alert.NewSender(w.alerts.hosts)
	if err != nil {
		return fmt.Errorf("set up the alerts: %w", err)
	}
	if err := alert.Register(mgr, trials, alert.Options{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("alert-controller"),
		Sender: sender, Dashboard: w.alerts.dashboard, Now: w.now,
	}); err != nil {
		return fmt.Errorf("set up the alerts: %w", err)
	}
	return nil
}
