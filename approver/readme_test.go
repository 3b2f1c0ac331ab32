package approver_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/inventory"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The tables of checks in README.md are the checks, so that they cannot go stale.
func TestReadmeChecks(t *testing.T) {
	table := func(signer string, flow approver.Flow) string {
		text := fmt.Sprintf("| `%s` | proves that |\n|---|---|\n", signer)
		for _, check := range approver.Checks(flow) {
			text += fmt.Sprintf("| `%s` | %s |\n", check.Name, check.Proves)
		}
		return text
	}
	want := "<!-- checks -->\n" + table("kubernetes.io/kube-apiserver-client-kubelet", approver.ClientFlow) + "\n" +
		table("kubernetes.io/kubelet-serving", approver.ServingFlow) + "<!-- end of checks -->\n"
	if !strings.Contains(readme(t), want) {
		t.Errorf("README.md should have\n%s", want)
	}
}

// Every reason is documented, and every reason of a verdict is that of a test.
func TestReadmeReasons(t *testing.T) {
	text := readme(t)
	for file, verdicts := range map[string]bool{"verdict.go": true, "names.go": false} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		tested := map[string]bool{approver.ReasonProvenByInventory: true, approver.ReasonProvenByCertificate: true}
		for _, tt := range corpus {
			tested[tt.want] = true
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			value, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(value.Names[0].Name, "Reason") {
				return true
			}
			reason := strings.TrimPrefix(value.Names[0].Name, "Reason")
			if literal, ok := value.Values[0].(*ast.BasicLit); ok {
				if written, err := strconv.Unquote(literal.Value); err != nil || written != reason {
					t.Errorf("%s is %s", value.Names[0].Name, literal.Value)
				}
			}
			if !strings.Contains(text, "`"+reason+"`") {
				t.Errorf("README.md lacks the reason %s", reason)
			}
			if verdicts && !tested[reason] {
				t.Errorf("no hostile request is refused for %s", reason)
			}
			return true
		})
	}
}

// The inventory of README.md can be read, and so can the number of hostile requests.
func TestReadmeInventory(t *testing.T) {
	text := readme(t)
	_, block, _ := strings.Cut(text, "```yaml\n")
	block, _, _ = strings.Cut(block, "```\n")
	list, err := inventory.Load([]byte(block))
	if err != nil || list.Node("worker-0") == nil || len(list.Node("worker-0").Addresses) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	if want := fmt.Sprintf("\n%d hand-written hostile requests", len(corpus)); !strings.Contains(text, want) {
		t.Errorf("README.md should say%s", want)
	}
}
