package trainer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		"EnvScrapeHeaders":      {envScrapeHeaders, report.EnvScrapeHeaders},
		"EnvPushURL":            {envPushURL, report.EnvPushURL},
		"EnvPushToken":          {envPushToken, report.EnvPushToken},
		"EnvMLflow":             {envMLflow, report.EnvMLflow},
		"EnvTrainerURL":         {envTrainerURL, report.EnvTrainerURL},
		"EnvTrainerToken":       {envTrainerToken, report.EnvTrainerToken},
		"FlagPushAddress":       {flagPushAddress, report.FlagPushAddress},
		"FlagKatibAddress":      {flagKatibAddress, report.FlagKatibAddress},
		"FlagTrial":             {flagTrial, report.FlagTrial},
		"FileHosts":             {fileHosts, report.FileHosts},
		"FilePushToken":         {filePushToken, report.FilePushToken},
		"PushAddress":           {pushAddress, report.PushAddress},
		"KatibAddress":          {katibAddress, report.KatibAddress},
		"KatibHosts":            {strings.Join(katibHosts(), " "), strings.Join(report.KatibHosts(), " ")},
		"FlagKind":              {flagKind, report.FlagKind},
		"FlagDir":               {flagDir, report.FlagDir},
		"FlagPath":              {flagPath, report.FlagPath},
		"FlagURL":               {flagURL, report.FlagURL},
		"FlagSharedNetwork":     {flagSharedNetwork, report.FlagSharedNetwork},
		"FlagFormat":            {flagFormat, report.FlagFormat},
		"FlagFilter":            {flagFilter, report.FlagFilter},
		"FlagMetric":            {flagMetric, report.FlagMetric},
		"FlagParameter":         {flagParameter, report.FlagParameter},
		"FlagRate":              {flagRate, report.FlagRate},
		"FlagGrace":             {flagGrace, report.FlagGrace},
		"DefaultDir":            {defaultDir, report.DefaultDir},
		"DefaultBinary":         {defaultBinary, report.DefaultBinary},
		"DefaultTerminationLog": {terminationLog, report.DefaultTerminationLog},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: the injector says %q, the collector %q", name, pair[0], pair[1])
		}
	}
	want := report.PushEnv("127.0.0.1:1", "token", "trial", "/dir")
	got := map[string]string{}
	for _, e := range pushEnv("127.0.0.1:1", "token", "trial", "/dir") {
		got[e.Name] = e.Value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the environment (-collector +injector)\n%s", diff)
	}
}
