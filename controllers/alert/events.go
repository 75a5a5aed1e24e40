package alert

import (
	"fmt"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/events"
)

func notSent(a Alert, to receiver, err error) events.Event {
	return events.Warning("AlertNotSent", "Notify", fmt.Sprintf("The alert %s was not sent to %s of the Secret %s: %v", a.Reason, to.name, v1beta1.SecretAlerts, err))
}
