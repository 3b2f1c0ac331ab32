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
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/status"
)

// clusterOperatorName is that of the stock operator.
const clusterOperatorName = "console"

// standing is a stock operator as far as its ClusterOperator goes: library-go's own status controller on consoles.operator.openshift.io/cluster.
type standing struct {
	*site
	syncer          *stockstatus.StatusSyncer
	operator        v1helpers.OperatorClient
	clusterOperator configv1listers.ClusterOperatorLister
}

func newStanding(t *testing.T) *standing {
	t.Helper()
	s := &standing{site: newSite(t, consoleObject(operatorv1.Managed))}
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

	// What the stock operator has said of itself an hour ago.
	live := consoleObject("")
	s.find("", live.Name, live)
	for kind, value := range map[string]operatorv1.ConditionStatus{
		"DeploymentAvailable": operatorv1.ConditionTrue, "SyncLoopRefreshProgressing": operatorv1.ConditionFalse,
		"SyncLoopRefreshDegraded": operatorv1.ConditionFalse, "ConfigMapSyncUpgradeable": operatorv1.ConditionTrue,
	} {
		live.Status.Conditions = append(live.Status.Conditions, operatorv1.OperatorCondition{
			Type: kind, Status: value, Reason: "AsExpected", Message: "As the stock operator says", LastTransitionTime: metav1.NewTime(anHourAgo()),
		})
	}
	if err := s.admin.Status().Update(t.Context(), live, client.FieldOwner(user)); err != nil {
		t.Fatal(err)
	}
	return s
}

func anHourAgo() time.Time { return time.Now().Add(-time.Hour).Truncate(time.Second) }

// says has the status controller look once at what is there, and returns the conditions of the ClusterOperator without their times, which differ.
func (s *standing) says() map[string]string {
	s.Helper()
	s.eventually("what the status controller knows of", func() string {
		live := consoleObject("")
		s.find("", live.Name, live)
		known, err := s.operator.GetObjectMeta()
		if err != nil || known.ResourceVersion != live.ResourceVersion {
			return "is an older Console"
		}
		co := &configv1.ClusterOperator{}
		cached, err := s.clusterOperator.Get(clusterOperatorName)
		if s.find("", clusterOperatorName, co) && (err != nil || cached.ResourceVersion != co.ResourceVersion) {
			return "is an older ClusterOperator"
		}
		return ""
	})
	if err := s.syncer.Sync(s.Context(), factory.NewSyncContext("test", events.NewInMemoryRecorder("test", clock.RealClock{}))); err != nil {
		s.Fatal(err)
	}
	co := &configv1.ClusterOperator{}
	s.find("", clusterOperatorName, co)
	said := map[string]string{}
	for _, c := range co.Status.Conditions {
		said[string(c.Type)] = string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	return said
}

// show writes conditions as the controller beside the stock operator does, some time ago.
func (s *standing) show(at time.Time, conditions ...operatorv1.OperatorCondition) {
	s.Helper()
	sink := &status.OperatorConditions{Client: s.server.Client(s, "sno", "system:masters"), Module: console.Name, Clock: clocktesting.NewFakePassiveClock(at)}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(operatorv1.GroupVersion.WithKind("Console"))
	s.find("", "cluster", live)
	if _, err := sink.Publish(s.Context(), live, conditions); err != nil {
		s.Fatal(err)
	}
}

// TestStockClusterOperator: in no State, and for however long, does the controller beside the stock operator make the stock ClusterOperator say
// anything else than it would say alone.
func TestStockClusterOperator(t *testing.T) {
	s := newStanding(t)
	alone := s.says()
	want := map[string]string{
		"Degraded":                     "False AsExpected: SyncLoopRefreshDegraded: As the stock operator says",
		"Progressing":                  "False AsExpected: SyncLoopRefreshProgressing: As the stock operator says",
		"Available":                    "True AsExpected: DeploymentAvailable: As the stock operator says",
		"Upgradeable":                  "True AsExpected: ConfigMapSyncUpgradeable: As the stock operator says",
		"EvaluationConditionsDetected": "Unknown NoData: ",
	}
	if diff := cmp.Diff(want, alone); diff != "" {
		t.Fatalf("the ClusterOperator without the controller (-want +got):\n%s", diff)
	}
	for _, state := range patch.States() {
		for _, persistent := range []bool{false, true} {
			result := patch.Result{State: state, Reason: "TheReason", Message: "The message"}
			s.show(anHourAgo(), result.Conditions(console.ConditionPrefix, persistent)...)
			if diff := cmp.Diff(alone, s.says()); diff != "" {
				t.Errorf("%s, persistent %t: the ClusterOperator (-without the controller +with it):\n%s", state, persistent, diff)
			}
		}
	}
}

// TestSuffixRule: what library-go's status controller takes up, which is why no condition of ours has such a type. What it has taken up stays for as
// long as the condition, also when whoever wrote it is gone.
func TestSuffixRule(t *testing.T) {
	s := newStanding(t)
	alone := s.says()
	bad := func(suffix string) operatorv1.OperatorCondition {
		value := operatorv1.ConditionTrue
		if suffix == operatorv1.OperatorStatusTypeAvailable || suffix == operatorv1.OperatorStatusTypeUpgradeable {
			value = operatorv1.ConditionFalse
		}
		return operatorv1.OperatorCondition{Type: console.ConditionPrefix + suffix, Status: value, Reason: "TheReason", Message: "The message"}
	}
	for _, suffix := range []string{"Degraded", "Progressing", "Available", "Upgradeable", "EvaluationConditionsDetected"} {
		s.show(anHourAgo(), bad(suffix))
		for look := range 2 {
			if got, want := s.says()[suffix], string(bad(suffix).Status)+" ConsoleTopology_TheReason: ConsoleTopology"+suffix+": The message"; got != want {
				t.Errorf("%s, look %d: %q, want %q", suffix, look, got, want)
			}
		}
	}
	inForce := patch.Result{State: patch.InForce}.Conditions(console.ConditionPrefix, false)
	s.show(time.Now(), inForce...)
	// Degraded is resisted for two minutes, but its words are there.
	s.show(time.Now().Add(-time.Minute), bad("Degraded"))
	got := s.says()
	if !strings.HasPrefix(got["Degraded"], "False AsExpected: ") || !strings.Contains(got["Degraded"], "The message") {
		t.Errorf("Degraded for a minute: %q", got["Degraded"])
	}
	s.show(time.Now(), inForce...)
	if diff := cmp.Diff(alone, s.says()); diff != "" {
		t.Errorf("when all are taken away (-before +after):\n%s", diff)
	}
}

// TestConditionsOfEarlierVersions: the first look of this version takes away what an earlier one has left, in whatever state, and with it what became of the
// ClusterOperator. What the stock operator says of itself stays.
func TestConditionsOfEarlierVersions(t *testing.T) {
	s := newStanding(t)
	alone := s.says()
	earlier := func(suffix string, value operatorv1.ConditionStatus) operatorv1.OperatorCondition {
		return operatorv1.OperatorCondition{Type: console.ConditionPrefix + suffix, Status: value, Reason: "Reverted", Message: "Somebody took it off"}
	}
	for _, state := range patch.States() {
		s.show(anHourAgo(), earlier("Degraded", operatorv1.ConditionTrue), earlier("Progressing", operatorv1.ConditionTrue), earlier("PatchInForce", operatorv1.ConditionFalse))
		before := s.says()
		if !strings.HasPrefix(before["Degraded"], "True") || !strings.HasPrefix(before["Progressing"], "True") {
			t.Fatalf("the conditions of an earlier version are not taken up: %v", before)
		}
		s.show(time.Now(), patch.Result{State: state, Reason: "TheReason", Message: "The message"}.Conditions(console.ConditionPrefix, true)...)
		if diff := cmp.Diff(alone, s.says()); diff != "" {
			t.Errorf("%s: the ClusterOperator (-without the controller +after the update):\n%s", state, diff)
		}
	}
}
