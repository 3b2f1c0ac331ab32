// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"errors"
	"slices"
	"testing"

	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/scenario"
)

func TestUnknown(t *testing.T) {
	if _, err := Start(t.Context(), Options{Scenario: "nowhere", Variant: SNO}); !errors.Is(err, scenario.ErrUnknown) {
		t.Errorf("an unknown scenario: %v", err)
	}
}

// Programs of hosts that are commands are not built, and etcd has no operator where it is not in the cluster.
func TestProgramsAndOperators(t *testing.T) {
	operators, err := framework.ReadOperators([]string{"etcd=sleep 1", "ingress=sleep 1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, variant := range Variants() {
		for _, program := range variant.Programs(operators) {
			if program == programs.EtcdHost || program == programs.IngressHost {
				t.Errorf("%s builds %s", variant, program.Name)
			}
		}
		for _, s := range scenario.All() {
			hosts, err := variant.Operators(s.Name, operators)
			if err != nil {
				t.Fatal(err)
			}
			etcd := slices.ContainsFunc(hosts, func(o report.Operator) bool { return o.Module == "etcdguard" })
			if etcd != (s.Name != "external") || !slices.ContainsFunc(hosts, func(o report.Operator) bool { return o.Module == "ingress" && !o.StandIn }) {
				t.Errorf("%s, %s: %+v", variant, s.Name, hosts)
			}
		}
	}
	if _, err := SNO.Operators("nowhere", operators); !errors.Is(err, scenario.ErrUnknown) {
		t.Errorf("an unknown scenario: %v", err)
	}
}
