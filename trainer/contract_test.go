package trainer

import (
	"testing"

	"github.com/vernier-ml/vernier/collector/report"
)

// The words that injector and collector share stand in both packages; they
// must be the same.
func TestTheContractWithTheCollectorIsOne(t *testing.T) {
	for name, pair := range map[string][2]string{
		"EnvURL":                {envURL, report.EnvURL},
		"EnvToken":              {envToken, report.EnvToken},
		"EnvCA":                 {envCA, report.EnvCA},
		"EnvPodUID":             {envPodUID, report.EnvPodUID},
		"EnvPushSocket":         {envPushSocket, report.EnvPushSocket},
		"FlagKind":              {flagKind, report.FlagKind},
		"FlagDir":               {flagDir, report.FlagDir},
		"FlagPath":              {flagPath, report.FlagPath},
		"FlagFormat":            {flagFormat, report.FlagFormat},
		"FlagFilter":            {flagFilter, report.FlagFilter},
		"FlagMetric":            {flagMetric, report.FlagMetric},
		"FlagTrial":             {flagTrial, report.FlagTrial},
		"FlagParameter":         {flagParameter, report.FlagParameter},
		"FlagGrace":             {flagGrace, report.FlagGrace},
		"DefaultDir":            {defaultDir, report.DefaultDir},
		"DefaultBinary":         {defaultBinary, report.DefaultBinary},
		"DefaultTerminationLog": {terminationLog, report.DefaultTerminationLog},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: the injector says %q, the collector %q", name, pair[0], pair[1])
		}
	}
}
