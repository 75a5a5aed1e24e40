// Package torture holds a test: eight kinds of writers, three kinds of sources,
// and a collector, a report service and a store that are killed at random while
// they work. No point may be lost, doubled or torn. See `make torture`.
package torture
