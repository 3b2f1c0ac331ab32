// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/topology"
)

func keyOf(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		name      string
		flags     []string
		arguments []string
		valid     bool
	}{
		{"endpoints", []string{"--etcd-endpoints=https://10.0.0.1:2379,http://[fd00::1]:2379"}, nil, true},
		{"stock", []string{"--stock"}, nil, true},
		{"none", nil, nil, false},
		{"no URL", []string{"--etcd-endpoints=10.0.0.1:2379"}, nil, false},
		{"a key is missing", []string{"--etcd-endpoints=https://a:2379", "--etcd-cert=x"}, nil, false},
		{"no image", []string{"--etcd-endpoints=https://a:2379", "--image="}, nil, false},
		{"no interval", []string{"--etcd-endpoints=https://a:2379", "--members-every=0s"}, nil, false},
		{"an argument", []string{"--stock"}, []string{"x"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := DefaultOptions()
			flags := flag.NewFlagSet(t.Name(), flag.ContinueOnError)
			o.BindFlags(flags)
			if err := flags.Parse(test.flags); err != nil {
				t.Fatal(err)
			}
			if err := o.Validate(test.arguments); errors.Is(err, ErrOptions) == test.valid || (err == nil) != test.valid {
				t.Errorf("got %v, valid: %t", err, test.valid)
			}
		})
	}
}

func named(names ...string) []member {
	var members []member
	for i, name := range names {
		members = append(members, member{name, etcdguard.Member{ID: uint64(i + 1), Healthy: true}}) //nolint:gosec // a few
	}
	return members
}

func TestWithoutNode(t *testing.T) {
	nodes := []corev1.Node{*node("m0"), *node("m1")}
	for _, test := range []struct {
		name    string
		members []member
		want    []string
	}{
		{"none", named("m0", "m1"), nil},
		{"one that has not started", named("m0", ""), nil},
		{"two", named("gone", "m0", "also-gone"), []string{"gone", "also-gone"}},
		{"the bootstrap member is the last", named("etcd-bootstrap", "m0", "gone"), []string{"gone", "etcd-bootstrap"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, m := range withoutNode(test.members, nodes) {
				got = append(got, m.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMemberConditions(t *testing.T) {
	sick := func(n int) []member {
		members := named("m0", "m1", "m2")
		for i := range n {
			members[i].Healthy = false
		}
		return members
	}
	learner := append(named("m0"), member{"m1", etcdguard.Member{ID: 9, Learner: true}})
	for _, test := range []struct {
		name    string
		members []member
		minimum int
		problem error
		want    [4]string
	}{
		{"complete", sick(0), 3, nil, [4]string{"True AsExpected", "False AsExpected", "False AsExpected", "True EnoughEtcdMembers"}},
		{"one is unhealthy", sick(1), 3, nil, [4]string{"True AsExpected", "True WaitingForMembers", "True MembersUnhealthy", "False NotEnoughEtcdMembers"}},
		{"no quorum", sick(2), 3, nil, [4]string{"False NoQuorum", "True WaitingForMembers", "True MembersUnhealthy", "False NotEnoughEtcdMembers"}},
		{"a single node", named("m0"), 1, nil, [4]string{"True AsExpected", "False AsExpected", "False AsExpected", "True EnoughEtcdMembers"}},
		{"a learner has no vote", learner, 2, nil, [4]string{"True AsExpected", "True WaitingForMembers", "False AsExpected", "False NotEnoughEtcdMembers"}},
		{"external", nil, 0, nil, [4]string{"True AsExpected", "False AsExpected", "False AsExpected", "True EnoughEtcdMembers"}},
		{"not read", nil, 3, errNoMember, [4]string{"False WaitingForMembers", "True WaitingForMembers", "True Error", "False NotEnoughEtcdMembers"}},
		{"a minimum that is not known", sick(0), 0, errNames, [4]string{"True AsExpected", "True WaitingForMembers", "True Error", "False NotEnoughEtcdMembers"}},
		{"a member that stays", sick(0), 3, errNames, [4]string{"True AsExpected", "False AsExpected", "True Error", "True EnoughEtcdMembers"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got [4]string
			for i, c := range memberConditions(test.members, scaling{minimum: test.minimum}, test.problem) {
				got[i] = string(c.Status) + " " + c.Reason
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMayRestart(t *testing.T) {
	sick := named("m0", "m1", "m2")
	sick[2].Healthy = false
	for _, test := range []struct {
		name    string
		mode    configv1.TopologyMode
		members []member
		want    string
	}{
		{"three", ha, named("m0", "m1", "m2"), "True AsExpected"},
		{"one is unhealthy", ha, sick, "False MembersUnhealthy"},
		{"the only one", sr, named("m0"), "True AsExpected"},
		{"the only one of three", ha, named("m0"), "False MembersUnhealthy"},
		{"two", dual, named("m0", "m1"), "True AsExpected"},
	} {
		t.Run(test.name, func(t *testing.T) {
			reading := topology.ReadingOf(test.mode)
			reason, err := mayRestart(topology.Cluster{ControlPlane: reading, Infrastructure: reading}, test.members)
			c := restartCondition(reason)
			if diff := cmp.Diff(test.want, string(c.Status)+" "+c.Reason); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A condition's time changes only with its status.
func TestMerged(t *testing.T) {
	before := merged(nil, []operatorv1.OperatorCondition{condition("A", true, "X", ""), condition("B", true, "X", "")})
	for i := range before {
		before[i].LastTransitionTime.Time = time.Unix(1, 0)
	}
	after := merged(before, []operatorv1.OperatorCondition{condition("A", true, "Y", ""), condition("B", false, "Y", "")})
	if !after[0].LastTransitionTime.Time.Equal(time.Unix(1, 0)) || after[1].LastTransitionTime.Time.Equal(time.Unix(1, 0)) || after[0].Reason != "Y" {
		t.Errorf("got %+v", after)
	}
}

func TestStockBudget(t *testing.T) {
	for nodes, want := range map[int]int{1: 0, 2: 1, 3: 2, 5: 4} {
		if got := stockBudget(nil, nodes).Spec.MinAvailable; got.IntValue() != want {
			t.Errorf("%d nodes: %v, want %d", nodes, got, want)
		}
	}
	live := stockBudget(nil, 3)
	live.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.IfHealthyBudget)
	if got := stockBudget(live, 2); got.Spec.UnhealthyPodEvictionPolicy == nil || got.Spec.MinAvailable.IntValue() != 1 {
		t.Errorf("got %+v", got.Spec)
	}
}
