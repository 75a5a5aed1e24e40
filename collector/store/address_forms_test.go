package store

import (
	"strings"
	"testing"
)

func TestNoFormOfAnAddressShowsAPassword(t *testing.T) {
	for _, a := range []string{
		"postgres:user=u password=s3cret host=h", "postgres://h/db?sslpassword=s3cret", "mysql://h/db?PASSWORD=s3cret",
	} {
		if strings.Contains(Redact(a), "s3cret") || CheckArgument(a) == nil {
			t.Errorf("%s is shown as %s, and taken as an argument: %v", a, Redact(a), CheckArgument(a))
		}
	}
}
