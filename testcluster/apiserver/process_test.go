// SPDX-License-Identifier: Apache-2.0

package apiserver

import "testing"

func TestSum(t *testing.T) {
	const metrics = `# HELP a_total A.
a_total{x="1",y="1"} 1
a_total{x="1",y="2"} 2
a_total{x="2",y="1"} 4
a_total_other 8
b 16
c many
`
	for name, test := range map[string]struct {
		name   string
		labels []string
		want   float64
		bad    bool
	}{
		"all":        {name: "a_total", want: 7},
		"one label":  {name: "a_total", labels: []string{`x="1"`}, want: 3},
		"two labels": {name: "a_total", labels: []string{`x="1"`, `y="2"`}, want: 2},
		"no labels":  {name: "b", want: 16},
		"none":       {name: "d", want: 0},
		"no number":  {name: "c", bad: true},
	} {
		if got, err := sum(metrics, test.name, test.labels...); got != test.want || (err != nil) != test.bad {
			t.Errorf("%s: %v, %v; want %v", name, got, err, test.want)
		}
	}
}
