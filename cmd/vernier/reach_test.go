package main

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestAServerThatIsGoneEndsWhatFollows(t *testing.T) {
	refused := syscall.ECONNREFUSED
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "experiments"}, "e", nil)
	tests := map[string]struct {
		home    string
		answers []error // then the last one for ever
		after   time.Duration
		code    int
		want    string
	}{
		"the instance is stopped": {"home", []error{nil, refused}, 25 * time.Second, exitUnreachable, "the server cannot be reached: connection refused; vernier up starts it again, and then the same command goes on"},
		"a cluster is gone":       {"", []error{refused}, 20 * time.Second, exitUnreachable, "the server cannot be reached: connection refused; when it is back, the same command goes on"},
		"it restarts":             {"home", []error{nil, refused, refused, nil}, 20 * time.Second, exitFailure, errServerBack.Error()},
		"it answers":              {"home", []error{nil}, time.Hour, 0, ""},
		"a gateway is alone":      {"", []error{nil, apierrors.NewServiceUnavailable("no backend")}, 25 * time.Second, exitUnreachable, "the server cannot be reached: no backend; when it is back, the same command goes on"},
		"a gateway was alone":     {"", []error{apierrors.NewTimeoutError("no backend", 0), nil}, 10 * time.Second, exitFailure, errServerBack.Error()},
		"a refusal is an answer":  {"home", []error{forbidden}, time.Hour, 0, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
					Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
						calls++
						return tc.answers[min(calls, len(tc.answers))-1]
					},
				}).Build()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				begin, said := time.Now(), ""
				err := (&session{client: c, home: tc.home}).awaitLoss(ctx, types.NamespacedName{Name: "e"})
				if err != nil {
					said = err.Error()
				}
				if took := time.Since(begin); took != tc.after || exitCode(err) != tc.code || said != tc.want {
					t.Errorf("after %s with code %d: %q, want after %s with %d: %q", took, exitCode(err), said, tc.after, tc.code, tc.want)
				}
			})
		})
	}
}
