// SPDX-License-Identifier: Apache-2.0

package approver_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/solonode/sno/approver/inventory"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The documents contain all checks, reasons and metrics, the number of hostile requests, and a valid inventory.
func TestDocuments(t *testing.T) {
	readme, page := read(t, "README.md"), read(t, "../docs/approver.md")
	_, flows, _ := strings.Cut(read(t, "requests/decide.go"), "\tClientFlow: {\n")
	for i, flow := range strings.Split(flows, "\tServingFlow: {\n") {
		table := "\n| `" + []string{"kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"}[i] + "` | proves that |\n|---|---|\n"
		for _, check := range regexp.MustCompile(`\t\t\{"(\w+)", "(.+)", check\w+\},\n`).FindAllStringSubmatch(flow, -1) {
			table += fmt.Sprintf("| `%s` | %s |\n", check[1], check[2])
		}
		if strings.Count(table, "\n") < 12 || !strings.Contains(readme, table+"\n") {
			t.Errorf("README.md lacks\n%s", table)
		}
	}
	hostile := read(t, "requests/testdata/hostile-requests.yaml")
	for pattern, source := range map[string]string{
		`Reason\w+ += "(\w+)"`: read(t, "requests/reasons.go"), `[rR]eason\w+ += "(\w+)"`: read(t, "approve/report.go") + read(t, "requests/competing.go"),
		`Name: "(sno_approver_\w+)"`: read(t, "controller/aging.go"),
	} {
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(source, -1)
		if len(found) < 3 {
			t.Errorf("found only %d matches of %s", len(found), pattern)
		}
		for _, match := range found {
			if !strings.Contains(readme+page, "`"+match[1]+"`") {
				t.Errorf("the documents lack %s", match[1])
			}
			if strings.HasPrefix(pattern, "Reason") && !strings.Contains(hostile, "want: "+match[1]+"\n") {
				t.Errorf("no hostile request has the reason %s", match[1])
			}
		}
	}
	_, hostile, _ = strings.Cut(hostile, "\nhostile:\n")
	if want := fmt.Sprintf("%d hostile requests", strings.Count(hostile, "\n  want: ")); !strings.Contains(page, want) {
		t.Errorf("docs/approver.md lacks %q", want)
	}
	_, block, _ := strings.Cut(page, "```yaml\n")
	block, _, _ = strings.Cut(block, "```\n")
	if list, err := inventory.Load([]byte(block)); err != nil || list.Node("worker-0") == nil || len(list.Node("worker-0").Addresses) != 2 {
		t.Errorf("%v, %v", list, err)
	}
}
