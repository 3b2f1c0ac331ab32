// Package report contains the results of a conformance run, SingleNodeConformanceReport, as YAML, JSON, Markdown, JUnit
// and one HTML page, and the differences between two reports.
//
// It does not depend on clusters or checks. Every result contains objects, fields, wanted and found values, and the
// results of the check's controls.
package report
