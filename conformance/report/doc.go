// Package report is what a conformance run leaves behind: a SingleNodeConformanceReport as YAML and JSON, the same for people as Markdown
// and as one HTML page that needs nothing else, JUnit for machines, and the difference of two reports.
//
// It knows nothing of clusters and of how a check is done. Every result names the objects and the fields that it looked at, what they
// should be and what they were, and whether the check was seen to fail on a cluster that is wrong on purpose (its negative controls).
package report
