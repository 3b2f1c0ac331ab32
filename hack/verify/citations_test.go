// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCitations(t *testing.T) {
	const (
		lacksCode = "R-EXAMPLE-1: no code cites it; an entry that needs none has the mark (planned), (tests) or (documentation)"
		lacksTest = "R-EXAMPLE-1: no test cites it"
		other     = "R-" + "ING-999" // in two parts, or the step would find it here
	)
	good := map[string]string{
		requirementsFile: "- <a id=\"x\"></a>**R-EXAMPLE-1** There is one router (U-EXAMPLE-1).\n- <a id=\"x\"></a>**R-EXAMPLE-2** (planned) Two.\n",
		upstreamFile:     "- <a id=\"x\"></a>**U-EXAMPLE-1** It reads a default.\n",
		"ingress/a.go":   "package ingress\n\n// R-EXAMPLE-1\n",
		"e2e/a.go":       "package e2e\n\n// R-EXAMPLE-1\n",
	}
	for name, test := range map[string]struct {
		edits map[string]string
		want  findings
	}{
		"good":               {},
		"code is gone":       {map[string]string{"ingress/a.go": "package ingress\n"}, findings{lacksCode}},
		"package comment":    {map[string]string{"ingress/a.go": "// R-EXAMPLE-1\n\n// Package ingress is small: R-EXAMPLE-1.\npackage ingress\n"}, findings{lacksCode}},
		"in doc.go":          {map[string]string{"ingress/a.go": "", "ingress/doc.go": good["ingress/a.go"]}, findings{lacksCode}},
		"code of a tool":     {map[string]string{"ingress/a.go": "", "hack/a.go": good["ingress/a.go"]}, findings{lacksCode}},
		"code of a test":     {map[string]string{"ingress/a.go": "", "ingress/a_test.go": good["ingress/a.go"]}, findings{lacksCode}},
		"test is gone":       {map[string]string{"e2e/a.go": "package e2e\n"}, findings{lacksTest}},
		"test in doc.go":     {map[string]string{"e2e/a.go": "", "e2e/doc.go": good["e2e/a.go"]}, findings{lacksTest}},
		"test of its module": {map[string]string{"e2e/a.go": "", "ingress/a_test.go": good["ingress/a.go"]}, nil},
		"golden file":        {map[string]string{"e2e/a.go": "", "ingress/testdata/a.yaml": "# R-EXAMPLE-1\n"}, nil},
		"unknown":            {map[string]string{"docs/a.md": other}, findings{"docs/a.md: cites " + other + ", which has no entry"}},
		"entry twice":        {map[string]string{upstreamFile: good[upstreamFile] + good[upstreamFile]}, findings{"docs/upstream.md: has the entry U-EXAMPLE-1 twice"}},
		"marked as test":     {map[string]string{requirementsFile: "- <a id=\"x\"></a>**R-EXAMPLE-1** (tests) A.\n", "ingress/a.go": ""}, nil},
		"shown partly":       {map[string]string{requirementsFile: "- <a id=\"x\"></a>**R-EXAMPLE-1** (partly) A.\n", "ingress/a.go": ""}, findings{lacksCode}},
		"another mark":       {map[string]string{requirementsFile: "- <a id=\"x\"></a>**R-EXAMPLE-1** (soon) A.\n"}, findings{"R-EXAMPLE-1: has the mark soon, which is none of planned, partly, tests and documentation"}},
	} {
		files := maps.Clone(good)
		maps.Copy(files, test.edits)
		if diff := cmp.Diff(test.want, citationFaults(files)); diff != "" {
			t.Errorf("%s: faults (-want +got):\n%s", name, diff)
		}
	}
}
