package expectations_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/controllers/expectations"
)

func object(uid, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}}
}

func TestStale(t *testing.T) {
	tests := map[string]struct {
		wrote, seen *corev1.Pod
		want        bool
	}{
		"an object that was never written is fresh":           {nil, object("a", "5"), false},
		"an object older than the write is stale":             {object("a", "9"), object("a", "5"), true},
		"a version with more digits is newer":                 {object("a", "99"), object("a", "100"), false},
		"the written version itself is fresh":                 {object("a", "9"), object("a", "9"), false},
		"a write to another object says nothing":              {object("b", "9"), object("a", "5"), false},
		"versions that cannot be compared are taken as fresh": {object("a", "x9"), object("a", "5"), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expected := expectations.New()
			if tc.wrote != nil {
				expected.Wrote(tc.wrote)
			}
			if got := expected.Stale(tc.seen); got != tc.want {
				t.Errorf("Stale = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestForgottenObjectIsFresh(t *testing.T) {
	expected := expectations.New()
	expected.Wrote(object("a", "9"))
	expected.Forget("a")
	if expected.Stale(object("a", "5")) {
		t.Error("a forgotten object is stale")
	}
}
