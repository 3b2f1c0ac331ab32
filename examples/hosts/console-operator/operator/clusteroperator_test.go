// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	configclientset "github.com/openshift/client-go/config/clientset/versioned"
	configinformers "github.com/openshift/client-go/config/informers/externalversions"
	configv1listers "github.com/openshift/client-go/config/listers/config/v1"
	"github.com/openshift/library-go/pkg/controller/factory"
	"github.com/openshift/library-go/pkg/operator/events"
	"github.com/openshift/library-go/pkg/operator/genericoperatorclient"
	stockstatus "github.com/openshift/library-go/pkg/operator/status"
	"github.com/openshift/library-go/pkg/operator/v1helpers"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/status"
)

const clusterOperatorName = "console"

// stockOperator is library-go's own status controller on consoles.operator.openshift.io/cluster, as in the stock
// operator.
type stockOperator struct {
	*site
	syncer          *stockstatus.StatusSyncer
	operator        v1helpers.OperatorClient
	clusterOperator configv1listers.ClusterOperatorLister
}

func newStockOperator(t *testing.T) *stockOperator {
	t.Helper()
	s := &stockOperator{site: newSite(t, consoleObject(operatorv1.Managed))}
	config := s.server.Config(t, user, "system:masters")
	configClient, err := configclientset.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	operatorClient, consoles, err := genericoperatorclient.NewClusterScopedOperatorClient(clock.RealClock{}, config,
		operatorv1.GroupVersion.WithResource("consoles"), operatorv1.GroupVersion.WithKind("Console"), appliedSpec, appliedStatus)
	if err != nil {
		t.Fatal(err)
	}
	configs := configinformers.NewSharedInformerFactory(configClient, 0)
	clusterOperators := configs.Config().V1().ClusterOperators()
	s.operator, s.clusterOperator = operatorClient, clusterOperators.Lister()
	s.syncer = stockstatus.NewClusterOperatorStatusController(clusterOperatorName, nil, configClient.ConfigV1(), clusterOperators, operatorClient,
		stockstatus.NewVersionGetter(), events.NewInMemoryRecorder("test", clock.RealClock{}), clock.RealClock{})
	_, _ = clusterOperators.Informer(), operatorClient.Informer()
	configs.Start(t.Context().Done())
	consoles.Start(t.Context().Done())
	configs.WaitForCacheSync(t.Context().Done())
	consoles.WaitForCacheSync(t.Context().Done())

	// Conditions that the stock operator has published an hour ago.
	live := consoleObject("")
	s.find("", live.Name, live)
	for kind, value := range map[string]operatorv1.ConditionStatus{
		"DeploymentAvailable": operatorv1.ConditionTrue, "SyncLoopRefreshProgressing": operatorv1.ConditionFalse,
		"SyncLoopRefreshDegraded": operatorv1.ConditionFalse, "ConfigMapSyncUpgradeable": operatorv1.ConditionTrue,
	} {
		live.Status.Conditions = append(live.Status.Conditions, operatorv1.OperatorCondition{
			Type: kind, Status: value, Reason: "AsExpected", Message: "Of the stock operator", LastTransitionTime: metav1.NewTime(anHourAgo()),
		})
	}
	if err := s.admin.Status().Update(t.Context(), live, client.FieldOwner(user)); err != nil {
		t.Fatal(err)
	}
	return s
}

func anHourAgo() time.Time { return time.Now().Add(-time.Hour).Truncate(time.Second) }

// conditions runs the status controller once with a current cache, and returns the conditions of the ClusterOperator
// without their times.
func (s *stockOperator) conditions() map[string]string {
	s.Helper()
	s.eventually("the cache of the status controller", func() string {
		live := consoleObject("")
		s.find("", live.Name, live)
		known, err := s.operator.GetObjectMeta()
		if err != nil || known.ResourceVersion != live.ResourceVersion {
			return "it has an older Console"
		}
		co := &configv1.ClusterOperator{}
		cached, err := s.clusterOperator.Get(clusterOperatorName)
		if s.find("", clusterOperatorName, co) && (err != nil || cached.ResourceVersion != co.ResourceVersion) {
			return "it has an older ClusterOperator"
		}
		return ""
	})
	if err := s.syncer.Sync(s.Context(), factory.NewSyncContext("test", events.NewInMemoryRecorder("test", clock.RealClock{}))); err != nil {
		s.Fatal(err)
	}
	co := &configv1.ClusterOperator{}
	s.find("", clusterOperatorName, co)
	found := map[string]string{}
	for _, c := range co.Status.Conditions {
		found[string(c.Type)] = string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	return found
}

// publish publishes conditions like the module's controller, some time ago.
func (s *stockOperator) publish(at time.Time, published ...operatorv1.OperatorCondition) {
	s.Helper()
	c := s.server.Client(s, "sno", "system:masters")
	sink := &status.OperatorConditions{Client: c, Module: console.Name}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(operatorv1.GroupVersion.WithKind("Console"))
	s.find("", "cluster", live)
	if _, err := sink.Publish(s.Context(), live, published); err != nil {
		s.Fatal(err)
	}
	operator := &operatorv1.Console{}
	s.find("", "cluster", operator)
	for i := range operator.Status.Conditions {
		operator.Status.Conditions[i].LastTransitionTime = metav1.NewTime(at)
	}
	if err := c.Status().Update(s.Context(), operator); err != nil {
		s.Fatal(err)
	}
}

// TestStockClusterOperator: the controller next to the stock operator never changes the conditions of the stock
// ClusterOperator, in any State.
func TestStockClusterOperator(t *testing.T) {
	s := newStockOperator(t)
	alone := s.conditions()
	want := map[string]string{
		"Degraded":                     "False AsExpected: SyncLoopRefreshDegraded: Of the stock operator",
		"Progressing":                  "False AsExpected: SyncLoopRefreshProgressing: Of the stock operator",
		"Available":                    "True AsExpected: DeploymentAvailable: Of the stock operator",
		"Upgradeable":                  "True AsExpected: ConfigMapSyncUpgradeable: Of the stock operator",
		"EvaluationConditionsDetected": "Unknown NoData: ",
	}
	if diff := cmp.Diff(want, alone); diff != "" {
		t.Fatalf("the ClusterOperator without the controller (-want +got):\n%s", diff)
	}
	for _, state := range patch.States() {
		for _, persistent := range []bool{false, true} {
			result := patch.Result{State: state, Reason: "TheReason", Message: "The message"}
			s.publish(anHourAgo(), result.Conditions(console.ConditionPrefix, persistent)...)
			if diff := cmp.Diff(alone, s.conditions()); diff != "" {
				t.Errorf("%s, persistent %t: the ClusterOperator (-without the controller +with it):\n%s", state, persistent, diff)
			}
		}
	}
}

// TestSuffixRule shows which types of conditions library-go's status controller aggregates, which is why the modules
// use none of them. An aggregated condition remains as long as its source, even if that is no longer updated.
func TestSuffixRule(t *testing.T) {
	s := newStockOperator(t)
	alone := s.conditions()
	bad := func(suffix string) operatorv1.OperatorCondition {
		value := operatorv1.ConditionTrue
		if suffix == operatorv1.OperatorStatusTypeAvailable || suffix == operatorv1.OperatorStatusTypeUpgradeable {
			value = operatorv1.ConditionFalse
		}
		return operatorv1.OperatorCondition{Type: console.ConditionPrefix + suffix, Status: value, Reason: "TheReason", Message: "The message"}
	}
	for _, suffix := range []string{"Degraded", "Progressing", "Available", "Upgradeable", "EvaluationConditionsDetected"} {
		s.publish(anHourAgo(), bad(suffix))
		for run := range 2 {
			if got, want := s.conditions()[suffix], string(bad(suffix).Status)+" ConsoleTopology_TheReason: ConsoleTopology"+suffix+": The message"; got != want {
				t.Errorf("%s, run %d: %q, want %q", suffix, run, got, want)
			}
		}
	}
	inForce := patch.Result{State: patch.InForce}.Conditions(console.ConditionPrefix, false)
	s.publish(time.Now(), inForce...)
	// Degraded is suppressed for two minutes, but its message is included.
	s.publish(time.Now().Add(-time.Minute), bad("Degraded"))
	got := s.conditions()
	if !strings.HasPrefix(got["Degraded"], "False AsExpected: ") || !strings.Contains(got["Degraded"], "The message") {
		t.Errorf("Degraded for a minute: %q", got["Degraded"])
	}
	s.publish(time.Now(), inForce...)
	if diff := cmp.Diff(alone, s.conditions()); diff != "" {
		t.Errorf("after the removal of all (-before +after):\n%s", diff)
	}
}

// TestConditionsOfEarlierVersions: the first publication of this version removes the conditions of an earlier one, in
// every state, and their effect on the ClusterOperator. Conditions of the stock operator stay.
func TestConditionsOfEarlierVersions(t *testing.T) {
	s := newStockOperator(t)
	alone := s.conditions()
	earlier := func(suffix string, value operatorv1.ConditionStatus) operatorv1.OperatorCondition {
		return operatorv1.OperatorCondition{Type: console.ConditionPrefix + suffix, Status: value, Reason: "Reverted", Message: "It was reverted"}
	}
	for _, state := range patch.States() {
		s.publish(anHourAgo(), earlier("Degraded", operatorv1.ConditionTrue), earlier("Progressing", operatorv1.ConditionTrue), earlier("PatchInForce", operatorv1.ConditionFalse))
		before := s.conditions()
		if !strings.HasPrefix(before["Degraded"], "True") || !strings.HasPrefix(before["Progressing"], "True") {
			t.Fatalf("the conditions of an earlier version are not aggregated: %v", before)
		}
		s.publish(time.Now(), patch.Result{State: state, Reason: "TheReason", Message: "The message"}.Conditions(console.ConditionPrefix, true)...)
		if diff := cmp.Diff(alone, s.conditions()); diff != "" {
			t.Errorf("%s: the ClusterOperator (-without the controller +after the update):\n%s", state, diff)
		}
	}
}
