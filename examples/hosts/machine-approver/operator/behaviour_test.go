// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/patch/patchtest"
)

// Without Machines nothing confirms a node that joins, but its kubelet confirms a renewal.
func TestSingleNodeWithoutMachines(t *testing.T) {
	s := newSite(t, shared.Server(t))
	s.topology(sr)
	s.node("w1")
	s.presents("w1", authority(), "w1", "w1", "192.0.2.1")
	s.start()
	s.expect(conditionClients, "False NoSecondSource")
	s.expect(configv1.OperatorAvailable, "True AsExpected")
	s.expect(configv1.OperatorDegraded, "False AsExpected")

	s.refused(s.joins("w2"), "NoSecondSource")
	s.approved(s.serves("w1", "w1", "192.0.2.1"))
	s.refused(s.serves("w1", "w1", "192.0.2.2"), "NamesNotProven")
	s.silent()

	s.stop()
	s.start(func(o *Options) { o.MaxPending = time.Nanosecond })
	s.expect(conditionPending, "True RequestsPending")
	s.silent()
}

func TestMachinesAreTheInventory(t *testing.T) {
	s := newSite(t, shared.Server(t))
	s.topology(sr)
	s.machine("w1.example.com", "", "192.0.2.1")
	s.start()
	s.expect(conditionClients, "True AsExpected")
	first := s.joins("w1.example.com")
	s.approved(first)
	s.refused(s.joins("w1.example.com"), "CountUsedUp")

	// A Machine sends no event.
	late := s.joins("w2.example.com")
	s.refused(late, "NotInInventory")
	s.silent()
	s.machine("w2.example.com", "")
	s.approved(late)

	s.node("w3.example.com")
	s.machine("w3.example.com", "w3.example.com", "192.0.2.3")
	s.approved(s.serves("w3.example.com", "w3.example.com", "192.0.2.3"))
	s.refused(s.serves("w3.example.com", "w3.example.com", "192.0.2.1"), "NamesNotProven")
	s.refused(s.joins("w3.example.com"), "NoWindow")
	s.silent()
}

// Each request has one source only, or a false one.
func TestOneSourceIsNotEnough(t *testing.T) {
	s := newSite(t, shared.Server(t))
	s.topology(ha)
	s.node("w1")
	s.node("w2")
	s.machine("w3", "", "192.0.2.3")
	s.presents("w1", foreign(), "w1", "w1", "192.0.2.1")   // not signed by the authority of the kubelets
	s.presents("w2", authority(), "w1", "w2", "192.0.2.2") // the certificate of another node
	s.start()
	s.expect(conditionClients, "True AsExpected")
	client, clientAuth := certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth
	for name, test := range map[string]struct{ request, reason string }{
		"a Machine, but not the bootstrapper":         {s.request("mallory", nil, client, clientAuth, "w3"), "RequestorWrong"},
		"a Machine, and one more group":               {s.request(bootstrapper, append(bootstrapperGroups.UnsortedList(), "example"), client, clientAuth, "w3"), "GroupsWrong"},
		"a Machine, and names in a client request":    {s.request(bootstrapper, bootstrapperGroups.UnsortedList(), client, clientAuth, "w3", "api"), "ContentsWrong"},
		"the bootstrapper, but no Machine":            {s.joins("w4"), "NotInInventory"},
		"the bootstrapper, but the node exists":       {s.joins("w1"), "NotInInventory"},
		"the node, but its kubelet is not trusted":    {s.serves("w1", "w1", "192.0.2.1"), "NamesNotProven"},
		"the node, but its kubelet is another node's": {s.serves("w2", "w2", "192.0.2.2"), "NamesNotProven"},
		"a node that does not exist":                  {s.serves("w3", "w3", "192.0.2.3"), "NodeMissing"},
	} {
		t.Log(name)
		s.refused(test.request, test.reason)
	}
	s.silent()
	// The same Machine still admits its node.
	s.approved(s.joins("w3"))
}

func TestFollowsTheInfrastructure(t *testing.T) {
	s := newSite(t, shared.Server(t))
	s.machine("w1", "")
	s.start()
	s.expect(conditionClients, "Unknown TopologyOrMachinesUnknown")
	request := s.joins("w1")
	s.refused(request, "TopologyOrMachinesUnknown")
	s.silent()
	s.topology(sr)
	s.approved(request)
	machine := &unstructured.Unstructured{}
	machine.SetGroupVersionKind(machineKind)
	if err := s.admin.DeleteAllOf(t.Context(), machine, client.InNamespace(machineNamespace)); err != nil {
		t.Fatal(err)
	}
	waiting := s.joins("w2")
	s.refused(waiting, "NoSecondSource")
	s.topology(ha)
	s.expect(conditionClients, "True AsExpected")
	s.refused(waiting, "NotInInventory")
	s.topology(sr)
	s.expect(conditionClients, "False NoSecondSource")
	s.silent()
}

// More pending requests than nodes and Machines explain stop every approval, until they are fewer.
func TestTooManyRequests(t *testing.T) {
	s := newSite(t, shared.Server(t))
	s.topology(ha)
	s.machine("w1", "")
	for range maxPendingExtra + 1 {
		csr := signingRequest(certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth, "unknown")
		s.create(csr)
	}
	request := s.joins("w1")
	s.start()
	s.expect(conditionPending, "True TooManyRequestsPending")
	s.silent()
	if got := s.approval(request); got != "pending" {
		t.Errorf("%s is %s", request, got)
	}
	var list certificatesv1.CertificateSigningRequestList
	if err := s.admin.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Name != request {
			if err := s.admin.Delete(t.Context(), &list.Items[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.approved(request)
	s.expect(conditionPending, "False AsExpected")
}

func TestConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	for name, test := range map[string]struct{ text, want string }{
		"disabled":   {"nodeClientCert:\n  disabled: true\n", "False DisabledByConfiguration"},
		"unreadable": {"nodeClientCert: [", "True AsExpected"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			s := newSite(t, shared.Server(t))
			s.topology(ha)
			s.machine("w1", "")
			s.node("w2")
			s.presents("w2", authority(), "w2", "w2")
			s.start(func(o *Options) { o.Config = file })
			s.expect(conditionClients, test.want)
			request := s.joins("w1")
			if name == "disabled" {
				s.refused(request, "DisabledByConfiguration")
			} else {
				s.approved(request)
			}
			s.approved(s.serves("w2", "w2")) // the switch has no effect on serving certificates
		})
	}
}

// The stock approver ignores the topology, and a Machine approves any number of requests.
func TestStock(t *testing.T) {
	s := newSite(t, shared.Server(t))
	s.topology(sr)
	s.node("w1")
	s.presents("w1", authority(), "w1", "w1")
	s.start(func(o *Options) { o.Stock = true })
	s.refused(s.joins("w2"), "NotInInventory")
	s.approved(s.serves("w1", "w1"))
	s.machine("w2", "")
	s.approved(s.joins("w2"))
	s.approved(s.joins("w2"))
	s.expect(configv1.OperatorAvailable, "True AsExpected")
	s.expect(conditionClients, "none")
	s.silent()
}

// Conditions of others remain, those of the host are restored, and it waits for its kinds.
func TestClusterOperator(t *testing.T) {
	server := patchtest.StartAPIServer(t, patchtest.Options{})
	s := newSiteWithoutKinds(t, server)
	s.start()
	s.silent()
	folder, err := patchtest.APIModuleDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{patchtest.ClusterOperators, patchtest.Infrastructures} {
		path, err := patchtest.CRDManifest(folder, name)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &crd.Object); err != nil {
			t.Fatal(err)
		}
		s.create(crd)
	}
	s.expect(conditionClients, "Unknown TopologyOrMachinesUnknown")
	s.topology(sr)
	s.expect(conditionClients, "False NoSecondSource") // the kinds of Machines are not served
	live := &configv1.ClusterOperator{}
	s.eventually("changing the conditions", func() string {
		if err := s.admin.Get(t.Context(), client.ObjectKey{Name: "machine-approver"}, live); err != nil {
			return err.Error()
		}
		i := slices.IndexFunc(live.Status.Conditions, func(c configv1.ClusterOperatorStatusCondition) bool { return c.Type == configv1.OperatorAvailable })
		live.Status.Conditions[i].Status, live.Status.Conditions[i].Reason = configv1.ConditionFalse, "Vandalism"
		live.Status.Conditions = append(live.Status.Conditions, configv1.ClusterOperatorStatusCondition{
			Type: "Example", Status: configv1.ConditionTrue, Reason: "Example", LastTransitionTime: metav1.Now(),
		})
		if err := s.admin.Status().Update(t.Context(), live); err != nil {
			return err.Error()
		}
		return ""
	})
	s.expect(configv1.OperatorAvailable, "True AsExpected")
	s.expect("Example", "True Example")
	s.silent()
}

func newSiteWithoutKinds(t *testing.T, server *patchtest.APIServer) *site {
	t.Helper()
	return &site{T: t, server: server, admin: server.Admin(t)}
}

// Requests are only approved, and nothing else is written but events and the ClusterOperator.
func TestWritesOnlyItsOwn(t *testing.T) {
	for _, write := range shared.Server(t).Writes(t, user) {
		path, _, _ := strings.Cut(write.URI, "?")
		if !slices.ContainsFunc([]string{"/approval", "/clusteroperators", "/events"}, func(part string) bool { return strings.Contains(path, part) }) {
			t.Errorf("unexpected: %s", write)
		}
	}
}
