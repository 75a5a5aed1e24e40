package api

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

// unpack reads the snapshot of a shared page.
func unpack(t *testing.T, page []byte) *vernierv1.Snapshot {
	t.Helper()
	found := regexp.MustCompile(`id="snapshot">([^<]*)<`).FindSubmatch(page)
	if found == nil {
		t.Fatal("there is no snapshot in the page")
	}
	packed, err := base64.StdEncoding.DecodeString(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	out := &vernierv1.Snapshot{}
	if err := proto.Unmarshal(data, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestASharedPageHoldsTheExperiment(t *testing.T) {
	const attack, secret = `</script><script>alert(1)</script>`, "hunter2"
	exp := searched()
	exp.Spec.TrialTemplate = &v1beta1.TrialTemplate{TrialSource: v1beta1.TrialSource{TrialSpec: &runtime.RawExtension{Raw: []byte(`{"env": "` + secret + `"}`)}}}
	objects := []client.Object{exp}
	for n := range 130 {
		trial := tried(exp, n, fmt.Sprint(float64(n)/200), "adam", float64(200-n))
		trial.Status.Conditions[len(trial.Status.Conditions)-1].Message = attack
		objects = append(objects, trial)
	}
	s := serve(t, interceptor.Funcs{}, objects...)
	curve := make([]float64, 1000)
	for n := range 130 {
		measured(t, s, fmt.Sprint(n), "loss", curve...)
	}
	got, err := s.ShareExperiment(t.Context(), &vernierv1.ShareExperimentRequest{Parent: parent, Trials: []int32{3, 7}, View: "/compare?s=3,7"})
	if err != nil {
		t.Fatal(err)
	}
	snapshot := unpack(t, got.GetPage())
	if bytes.Contains(got.GetPage(), []byte("alert(1)")) {
		t.Error("a message is part of the page's text")
	}
	if strings.Contains(snapshot.String(), secret) || snapshot.GetExperiment().GetSpec().GetFields()["trialTemplate"] != nil {
		t.Error("the trial template is shared")
	}
	if !strings.Contains(snapshot.GetAbout().GetYaml(), "optimizer") {
		t.Errorf("the definition is %s", snapshot.GetAbout().GetYaml())
	}
	points := map[int32]int{}
	for _, c := range snapshot.GetCurves()[0].GetSeries() {
		points[c.GetTrial()] = len(c.GetX())
	}
	// The wanted ones in detail, then the best: those of the highest numbers.
	want := map[int32]bool{3: true, 7: true}
	for n := int32(129); len(want) < usualShared; n-- {
		want[n] = true
	}
	for n, have := range points {
		if most := map[bool]int{true: chosenPoints, false: sharedPoints}[n == 3 || n == 7]; have > most || have < most/4 {
			t.Errorf("the curve of trial %d has %d points", n, have)
		}
		if !want[n] {
			t.Errorf("there is a curve of trial %d", n)
		}
	}
	size := map[string]int{"trials": int(snapshot.GetTrials().GetTotal()), "curves": len(points), "answers": len(snapshot.GetAnswers())}
	if diff := cmp.Diff(map[string]int{"trials": 130, "curves": usualShared, "answers": 4}, size); diff != "" {
		t.Error(diff)
	}
	if snapshot.GetView() != "/compare?s=3,7" {
		t.Errorf("it opens %s", snapshot.GetView())
	}
}

func TestWhatCannotBeShared(t *testing.T) {
	s := serve(t, interceptor.Funcs{}, searched())
	for name, r := range map[string]*vernierv1.ShareExperimentRequest{
		"too many trials": {Parent: parent, Trials: make([]int32, mostShared+1)},
		"a long view":     {Parent: parent, View: strings.Repeat("x", maxView+1)},
		"a trial":         {Parent: parent + "/trials/exp-0000"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := s.ShareExperiment(t.Context(), r); connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Error(err)
			}
		})
	}
}
