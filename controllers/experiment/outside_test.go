package experiment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestWhoseTrialsAreHandedOut(t *testing.T) {
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	trial := func(name string, l v1beta1.Lease, change ...func(*v1beta1.Trial)) *v1beta1.Trial {
		t.Helper()
		out := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := out.SetLease(l); err != nil {
			t.Fatal(err)
		}
		for _, f := range change {
			f(out)
		}
		return out
	}
	over := func(t *v1beta1.Trial) { t.MarkSucceeded("", metav1.NewTime(now)) }
	asked := func(t *v1beta1.Trial) { metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationStop, "x") }
	later, before := now.Add(time.Second), now.Add(-time.Second)
	mine, free := leased([]*v1beta1.Trial{
		trial("mine", v1beta1.Lease{Request: "me", Expires: later}),
		trial("mine, and lost", v1beta1.Lease{Request: "me", Expires: before}),
		trial("mine, and over", v1beta1.Lease{Request: "me", Expires: before}, over),
		trial("mine, and handed back", v1beta1.Lease{Request: "me", Expires: later, Released: true}),
		trial("another's", v1beta1.Lease{Request: "you", Expires: later}),
		trial("another's, and lost", v1beta1.Lease{Request: "you", Expires: now}),
		trial("another's, and over", v1beta1.Lease{Request: "you", Expires: before}, over),
		trial("another's, asked to stop", v1beta1.Lease{Request: "you", Expires: before}, asked),
		{ObjectMeta: metav1.ObjectMeta{Name: "of a job"}},
	}, v1beta1.Lease{Request: "me"}, now)
	names := func(trials []*v1beta1.Trial) (out []string) {
		for _, t := range trials {
			out = append(out, t.Name)
		}
		return out
	}
	if diff := cmp.Diff([]string{"mine", "mine, and lost", "mine, and over"}, names(mine)); diff != "" {
		t.Error("the request's own:", diff)
	}
	if diff := cmp.Diff([]string{"mine, and handed back", "another's, and lost"}, names(free)); diff != "" {
		t.Error("without an owner:", diff)
	}
}
