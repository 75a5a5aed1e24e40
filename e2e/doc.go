// Package e2e tries the product as a user would: real binaries, a real control
// plane in a temporary home, real processes. Its tests have the build tag e2e.
package e2e
