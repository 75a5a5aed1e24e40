// Package report is how points travel from a trial's pod to the report service:
// the token that a trial reports with, the batches on the wire, the client that
// the collector runs, and the summary that stands in when the service cannot be
// reached.
package report
