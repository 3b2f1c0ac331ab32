// SPDX-License-Identifier: Apache-2.0

// Package report contains the results of a conformance run, SingleNodeConformanceReport, as YAML, JSON, JUnit and one
// HTML page, and the differences between two reports.
//
// It does not depend on clusters or checks. Every result contains objects, fields, wanted and found values, and the
// results of the check's controls.
//
// A file of waivers is a YAML list:
//
//   - id: SNO-ING-004
//     scenario: ha # default: all scenarios
//     why: fixed in the stock operator of the next release
//     expires: 2027-01-01
//
// For a picture of the page the window must be as tall as the open content (root also needs --no-sandbox):
//
//	chromium --headless --hide-scrollbars --window-size=1280,1100 --screenshot=matrix.png "file://$PWD/report.html"
//	chromium --headless --hide-scrollbars --window-size=1280,3600 --screenshot=cell.png "file://$PWD/report.html#before/ha/ingress"
package report
