// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"crypto/x509"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/inventory"
	"github.com/solonode/sno/approver/requests"
	"github.com/solonode/sno/topology"
)

func clusterOf(mode configv1.TopologyMode) *topology.Cluster {
	return &topology.Cluster{ControlPlane: topology.ReadingOf(mode), Infrastructure: topology.ReadingOf(mode), Platform: configv1.NonePlatformType}
}

func TestFlow(t *testing.T) {
	const absent, present, unknown = approver.MachinesAbsent, approver.MachinesPresent, approver.MachinesUnknown
	enabled, none := flow{enabled: true, reason: reasonAsExpected}, flow{reason: reasonNoSecondSource}
	notKnown, disabled := flow{unknown: true, reason: reasonUnknown}, flow{reason: reasonDisabled}
	for name, test := range map[string]struct {
		sources           sources
		vendored, wantNow flow
	}{
		"single node without Machines":     {sources{cluster: clusterOf(sr), presence: absent}, none, enabled},
		"single node with Machines":        {sources{cluster: clusterOf(sr), presence: present}, enabled, enabled},
		"highly available, no Machines":    {sources{cluster: clusterOf(ha), presence: absent}, enabled, enabled},
		"highly available, Machines":       {sources{cluster: clusterOf(ha), presence: present}, enabled, enabled},
		"a topology of a later release":    {sources{cluster: clusterOf("Lunar"), presence: absent}, enabled, enabled},
		"Machines could not be read":       {sources{cluster: clusterOf(sr), presence: unknown}, notKnown, enabled},
		"highly available, Machines not":   {sources{cluster: clusterOf(ha), presence: unknown}, notKnown, enabled},
		"the Infrastructure does not":      {sources{presence: present}, notKnown, enabled},
		"disabled by configuration":        {sources{cluster: clusterOf(ha), presence: present, disabled: true}, disabled, disabled},
		"disabled, and nothing could read": {sources{disabled: true}, disabled, disabled},
	} {
		short := func(f flow) flow { f.message = ""; return f }
		unexported := cmp.AllowUnexported(flow{})
		if diff := cmp.Diff(test.vendored, short(vendoredFlow(&test.sources)), unexported); diff != "" {
			t.Errorf("%s, vendored: %s", name, diff)
		}
		if diff := cmp.Diff(test.wantNow, short(stockFlow(&test.sources)), unexported); diff != "" {
			t.Errorf("%s, stock: %s", name, diff)
		}
	}
}

// TestDecide compares both rules on one request with changes.
func TestDecide(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	type inputs struct {
		csr     *certificatesv1.CertificateSigningRequest
		sources *sources
		machine *inventory.Machine
	}
	joining := func() inputs {
		csr := signingRequest(certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth, "w1")
		csr.Spec.Username, csr.Spec.Groups = bootstrapper, bootstrapperGroups.UnsortedList()
		machine := &inventory.Machine{Namespace: machineNamespace, Name: "w1", Created: now.Add(-time.Minute), Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalDNS, Address: "w1"}, {Type: corev1.NodeInternalIP, Address: "192.0.2.1"},
		}}
		return inputs{csr, &sources{nodes: sets.New("w0")}, machine}
	}
	serving := func() inputs {
		csr := signingRequest(certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth, "w1", "w1", "192.0.2.1")
		csr.Spec.Username, csr.Spec.Groups = nodePrefix+"w1", nodeGroups.UnsortedList()
		in := joining()
		in.csr, in.machine.NodeName, in.sources.nodes = csr, "w1", sets.New("w1")
		return in
	}
	renewing := func() inputs {
		in := serving()
		in.machine = nil
		in.sources.kubelets = map[string][]*x509.Certificate{"w1": {authority().serving("w1", "w1", "192.0.2.1")}}
		in.sources.authority = x509.NewCertPool()
		in.sources.authority.AddCert(authority().certificate)
		return in
	}
	const byMachine, byKubelet = "approve ProvenByInventory", "approve ProvenByCertificate"
	for name, test := range map[string]struct {
		inputs          func() inputs
		change          func(*inputs)
		vendored, stock string
	}{
		"a Machine and the bootstrapper": {joining, func(*inputs) {}, byMachine, byMachine},
		"another user":                   {joining, func(in *inputs) { in.csr.Spec.Username = "mallory" }, "RequestorWrong", "RequestorWrong"},
		"a group is missing":             {joining, func(in *inputs) { in.csr.Spec.Groups = in.csr.Spec.Groups[1:] }, "GroupsWrong", "GroupsWrong"},
		"for servers": {
			joining, func(in *inputs) { in.csr.Spec.Usages[1] = certificatesv1.UsageServerAuth }, "UsagesWrong", "UsagesWrong",
		},
		"no Machine":               {joining, func(in *inputs) { in.machine = nil }, "NotInInventory", "NotInInventory"},
		"the Machine has a node":   {joining, func(in *inputs) { in.machine.NodeName = "w1" }, "NoWindow", "NotInInventory"},
		"the node exists":          {joining, func(in *inputs) { in.sources.nodes.Insert("w1") }, "NodeExists", "NodeExists"},
		"nodes were not read":      {joining, func(in *inputs) { in.sources.nodes = nil }, "NodesUnknown", "NodesUnknown"},
		"approvals were not read":  {joining, func(in *inputs) { in.sources.approvals = nil }, "ApprovalsUnknown", byMachine},
		"one was approved before":  {joining, func(in *inputs) { in.sources.approvals["w1"] = 1 }, "CountUsedUp", byMachine},
		"the Machine goes away":    {joining, func(in *inputs) { in.machine.Deleting = true }, "NotInInventory", byMachine},
		"an old Machine":           {joining, func(in *inputs) { in.machine.Created = now.Add(-3 * time.Hour) }, "WindowClosed", "NotInInventory"},
		"a request in time, later": {joining, func(in *inputs) { in.sources.now = now.Add(119*time.Minute + 30*time.Second) }, "WindowClosed", byMachine},
		"text around the PEM":      {joining, func(in *inputs) { in.csr.Spec.Request = append([]byte("Ada\n"), in.csr.Spec.Request...) }, "PEMSurplus", byMachine},
		"no PEM":                   {joining, func(in *inputs) { in.csr.Spec.Request = nil }, "NotPEM", "NotPEM"},
		"decided": {joining, func(in *inputs) {
			in.csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
		}, "AlreadyDecided", "AlreadyDecided"},

		"the Machine of the node":     {serving, func(*inputs) {}, byMachine, byMachine},
		"another node asks":           {serving, func(in *inputs) { in.csr.Spec.Username = nodePrefix + "w2" }, "RequestorWrong", "RequestorWrong"},
		"the Machine of another node": {serving, func(in *inputs) { in.machine.NodeName = "w2" }, "NamesNotProven", "NamesNotProven"},
		"an address is missing":       {serving, func(in *inputs) { in.machine.Addresses = in.machine.Addresses[:1] }, "NamesNotProven", "NamesNotProven"},
		"the node does not exist":     {serving, func(in *inputs) { in.sources.nodes = sets.New[string]() }, "NodeMissing", byMachine},
		"no Machine, and no kubelet":  {serving, func(in *inputs) { in.machine = nil }, "NamesNotProven", "NamesNotProven"},
		"the kubelet has all names":   {renewing, func(*inputs) {}, byKubelet, byKubelet},
		"the authority is not known":  {renewing, func(in *inputs) { in.sources.authority = nil }, "NamesNotProven", "NamesNotProven"},
		"another authority":           {renewing, func(in *inputs) { in.sources.kubelets["w1"][0] = foreign().serving("w1", "w1", "192.0.2.1") }, "NamesNotProven", "NamesNotProven"},
		"the kubelet of another node": {renewing, func(in *inputs) { in.sources.kubelets["w1"][0] = authority().serving("w2", "w1", "192.0.2.1") }, "NamesNotProven", "NamesNotProven"},
		"an address was not held":     {renewing, func(in *inputs) { in.sources.kubelets["w1"][0] = authority().serving("w1", "w1", "192.0.2.2") }, "NamesNotProven", "NamesNotProven"},
		"fewer names than held": {renewing, func(in *inputs) {
			in.sources.kubelets["w1"][0] = authority().serving("w1", "w1", "w1.lan", "192.0.2.1")
		}, byKubelet, "NamesNotProven"},
		"the address is an egress IP":  {renewing, func(in *inputs) { egress(in.sources, "w1") }, byKubelet, byKubelet},
		"an egress IP of another node": {renewing, func(in *inputs) { egress(in.sources, "w2") }, "NamesNotProven", "NamesNotProven"},
	} {
		in := test.inputs()
		in.csr.CreationTimestamp = metav1.NewTime(now)
		in.sources.now, in.sources.approvals = now, map[string]int{}
		test.change(&in)
		if in.machine != nil {
			in.sources.machines = []inventory.Machine{*in.machine}
		}
		in.sources.inventory, _ = inventory.FromMachines(in.sources.machines...)
		for rule, decide := range map[string]func(*certificatesv1.CertificateSigningRequest, *sources) requests.Verdict{"vendored": vendoredDecide, "stock": stockDecide} {
			want := test.vendored
			if rule == "stock" {
				want = test.stock
			}
			verdict := decide(in.csr, in.sources)
			got := verdict.Reason
			if verdict.Approve {
				got = "approve " + got
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s: %s%s", name, rule, diff, verdict.Message)
			}
		}
	}
}

// egress replaces the address of the kubelet's certificate by an egress IP of the node.
func egress(s *sources, node string) {
	s.kubelets["w1"][0] = authority().serving("w1", "w1")
	s.egress = map[string]requests.EgressIPs{node: {Node: node, IPs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}}
}

// A disabled flow outweighs every proof of a client request, and none of a serving request.
func TestVerdictOfAFlow(t *testing.T) {
	r := rules{decide: func(csr *certificatesv1.CertificateSigningRequest, _ *sources) requests.Verdict {
		return requests.Verdict{Approve: true, Flow: requests.Flow(csr.Name)}
	}}
	for flowName, want := range map[requests.Flow]bool{requests.ClientFlow: false, requests.ServingFlow: true} {
		csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: string(flowName)}}
		if got := r.verdict(csr, &sources{}, flow{}).Approve; got != want {
			t.Errorf("%s: %t", flowName, got)
		}
		if !r.verdict(csr, &sources{}, flow{enabled: true}).Approve {
			t.Errorf("%s is refused although enabled", flowName)
		}
	}
}

func TestMergedConditions(t *testing.T) {
	before, now := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	at := func(c configv1.ClusterOperatorStatusCondition, when metav1.Time) configv1.ClusterOperatorStatusCondition {
		c.LastTransitionTime = when
		return c
	}
	on, off := condition("A", configv1.ConditionTrue, "On", ""), condition("A", configv1.ConditionFalse, "Off", "")
	foreign := at(condition("B", configv1.ConditionTrue, "Other", ""), before)
	renamed := condition("A", configv1.ConditionTrue, "OnAgain", "")
	type list = []configv1.ClusterOperatorStatusCondition
	for name, test := range map[string]struct{ present, want list }{
		"new":            {list{foreign}, list{foreign, at(renamed, now)}},
		"another reason": {list{at(on, before), foreign}, list{at(renamed, before), foreign}},
		"another status": {list{at(off, before), foreign}, list{at(renamed, now), foreign}},
	} {
		if diff := cmp.Diff(test.want, merged(test.present, list{renamed}, now)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestExplainsEachReasonOnce(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := &reconciler{events: recorder, reported: map[types.UID]string{}}
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "csr-1", UID: "1"}}
	for _, reason := range []string{"NodeMissing", "NodeMissing", "NamesNotProven"} {
		r.explain(t.Context(), decision{csr: csr, verdict: requests.Verdict{Reason: reason, Message: "Why"}})
	}
	r.explain(t.Context(), decision{csr: csr, changed: true})
	r.forget(nil)
	r.explain(t.Context(), decision{csr: csr, verdict: requests.Verdict{Reason: "NamesNotProven", Message: "Why"}})
	close(recorder.Events)
	var got []string
	for event := range recorder.Events {
		got = append(got, event)
	}
	want := []string{"Warning NodeMissing Not approved: Why", "Warning NamesNotProven Not approved: Why", "Warning NamesNotProven Not approved: Why"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestShortened(t *testing.T) {
	long := strings.Repeat("ä", maxNote)
	if got := shortened("x" + long); len(got) > maxNote || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid: %t", len(got), utf8.ValidString(got))
	}
	if got := shortened("short"); got != "short" {
		t.Error(got)
	}
}

func TestOptions(t *testing.T) {
	for name, test := range map[string]struct {
		change    func(*Options)
		arguments []string
		want      string
	}{
		"defaults":          {func(*Options) {}, nil, ""},
		"an argument":       {func(*Options) {}, []string{"x"}, `unexpected argument "x"`},
		"no retry interval": {func(o *Options) { o.RetryInterval = 0 }, nil, "--retry-every=0s"},
		"no limit of age":   {func(o *Options) { o.MaxPending = -time.Second }, nil, "--max-pending=-1s"},
	} {
		options := DefaultOptions()
		test.change(&options)
		err := options.Validate(test.arguments)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
