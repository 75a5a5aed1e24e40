package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
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
	exp.Spec.MetricsCollectorSpec = &v1beta1.MetricsCollectorSpec{
		Collector: &v1beta1.CollectorSpec{Kind: v1beta1.CustomCollector, CustomCollector: &corev1.Container{Name: "reader", Env: []corev1.EnvVar{{Name: "KEY", Value: secret}}}},
		Source:    &v1beta1.SourceSpec{HTTPGet: &corev1.HTTPGetAction{HTTPHeaders: []corev1.HTTPHeader{{Name: "Authorization", Value: secret}}}},
	}
	exp.Annotations = map[string]string{"kapp.k14s.io/original": secret, "objectset.rio.cattle.io/applied": secret, corev1.LastAppliedConfigAnnotation: secret,
		v1beta1.AnnotationNotes: "a note"}
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
		t.Errorf("a secret is shared: %s", snapshot.GetAbout().GetYaml())
	}
	if yaml := snapshot.GetAbout().GetYaml(); !strings.Contains(yaml, "optimizer") || !strings.Contains(yaml, "a note") {
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

func TestCurvesThatTakeTooLongAreNotedInASharedPage(t *testing.T) {
	exp := searched()
	s := serve(t, interceptor.Funcs{}, exp, tried(exp, 0, "0.25", "adam", 1), tried(exp, 1, "0.5", "adam", 2))
	s.seriesPatience = 0
	got, err := s.ShareExperiment(t.Context(), &vernierv1.ShareExperimentRequest{Parent: parent, Trials: []int32{1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range unpack(t, got.GetPage()).GetCurves() {
		if diff := cmp.Diff([]int32{1, 0}, c.GetLeftOut()); diff != "" {
			t.Errorf("by %s: %s", c.GetAxis(), diff)
		}
	}
}

func TestFewPagesAreMadeAtOnce(t *testing.T) {
	s := serve(t, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		t.Error("one more is made")
		return nil
	}}, searched())
	for range cap(s.sharing) {
		s.sharing <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ShareExperiment(ctx, &vernierv1.ShareExperimentRequest{Parent: parent}); connect.CodeOf(err) != connect.CodeCanceled {
		t.Error(err)
	}
}
