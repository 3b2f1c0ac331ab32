package etcdguard_test

import (
	"errors"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/topology"
)

func TestValidate(t *testing.T) {
	if err := of(ha, 3, conditions(), operatorGuard).Validate(); err != nil {
		t.Error(err)
	}
	if err := (etcdguard.Inputs{}).Validate(); err != nil {
		t.Error(err)
	}
	for says, change := range map[string]func(*etcdguard.Inputs){
		"no topology":                                           func(in *etcdguard.Inputs) { *in.Cluster = topology.Cluster{} },
		"a member in the list has no ID":                        func(in *etcdguard.Inputs) { in.Members[0].ID = 0 },
		"ClusterVersion /x is not /version":                     func(in *etcdguard.Inputs) { in.ClusterVersion.Name = "x" },
		"Etcd /x is not /cluster":                               func(in *etcdguard.Inputs) { conditions()(in); in.Etcd.Name = "x" },
		"Deployment x/etcd-quorum-guard is not openshift-etcd/": func(in *etcdguard.Inputs) { in.Deployment.Namespace = "x" },
		"PodDisruptionBudget openshift-etcd/x is not":           func(in *etcdguard.Inputs) { in.Budget.Name = "x" },
		"is not openshift-etcd/etcd-guard-pdb":                  func(in *etcdguard.Inputs) { in.PodsBudget = &policyv1.PodDisruptionBudget{} },
		"the member 1 is there twice":                           func(in *etcdguard.Inputs) { in.Members[2].ID = 1 },
	} {
		err := of(ha, 3, change).Validate()
		if !errors.Is(err, etcdguard.ErrInputs) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want an error saying %q", err, says)
		}
	}
}

// Names that are written down elsewhere, on clusters and in other programs.
func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		etcdguard.FieldOwner: us, etcdguard.GuardName: "etcd-quorum-guard", etcdguard.Namespace: "openshift-etcd",
		etcdguard.OverrideKey: key, etcdguard.ClusterVersionOperator: cvo, etcdguard.PodsBudgetName: "etcd-guard-pdb",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
