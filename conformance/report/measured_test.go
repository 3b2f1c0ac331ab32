// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"strings"
	"testing"
)

// Every format contains the measurements and distinguishes those out of bounds.
func TestMeasurements(t *testing.T) {
	measured := sampleReports("sno")[0]
	measured.Measurements = []Measurement{
		{What: "rollout", Measured: "outage 1.00 s", Bound: "max 2.00 s", Compared: "stock <2.00 s>", Held: true},
		{What: "restart", Measured: "outage 9.00 s", Bound: "max 5.00 s", Compared: "-"},
	}
	var page, yaml bytes.Buffer
	if err := WriteHTML(&page, HTML{Reports: []Report{measured}}); err != nil {
		t.Fatal(err)
	}
	if err := WriteYAML(&yaml, measured); err != nil {
		t.Fatal(err)
	}
	read, err := Read("report.yaml", &yaml)
	if err != nil || len(read) != 1 || len(read[0].Measurements) != 2 || read[0].Measurements[0] != measured.Measurements[0] {
		t.Errorf("read again: %v, %+v", err, read)
	}
	for _, want := range []string{"Measured on none-sno", "<tr><td>✔<td>rollout<td>outage 1.00 s<td>max 2.00 s<td>stock &lt;2.00 s&gt;", `<tr class="no"><td>✘<td>restart`} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%q is missing in the page", want)
		}
	}
}
