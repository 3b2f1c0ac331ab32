// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/patch/patchtest"
)

const tolerated = "master unreachable"

var (
	single = operands{&outcome{1, "25%", "25%", "", "master", tolerated, "none"}, &outcome{1, "25%", "25%", "", "master os", tolerated, "none"}}
	two    = operands{
		&outcome{2, "1", "3", "always", "master", tolerated, "console 1"}, &outcome{2, "1", "3", "always", "master os", tolerated, "downloads 1"},
	}
	onWorkers = operands{
		&outcome{2, "1", "3", "always", "", tolerated, "console 1"}, &outcome{2, "1", "3", "always", "os", tolerated, "downloads 1"},
	}
	onOneWorker = operands{&outcome{1, "25%", "25%", "", "", tolerated, "none"}, &outcome{1, "25%", "25%", "", "os", tolerated, "none"}}
)

// replacing is single while old pods of two replicas may exist.
func replacing() operands {
	way := operands{ptr.To(*single.Console), ptr.To(*single.Downloads)}
	way.Console.Unavailable, way.Downloads.Unavailable = "1", "1"
	return way
}

func TestDeploymentsHaveTheShape(t *testing.T) {
	for _, test := range []struct {
		name                         string
		controlPlane, infrastructure configv1.TopologyMode
		want                         operands
	}{
		{"single", sr, sr, single},
		{"single with workers", sr, ha, single},
		{"highly available", ha, ha, two},
		{"external", external, ha, onWorkers},
		{"external with one worker", external, sr, onOneWorker},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t, infrastructure(), consoleObject(operatorv1.Managed))
			s.topology(test.controlPlane, test.infrastructure)
			s.start(DefaultOptions())
			s.expect(test.want)
			s.silent()
			live := deployment("console")
			if !s.find(namespace, "console", live) || live.ManagedFields[0].Manager != "console-operator" {
				t.Errorf("the managers are %v", live.ManagedFields)
			}
		})
	}
}

func TestFollowsTopology(t *testing.T) {
	s := newSite(t, infrastructure(), consoleObject(operatorv1.Managed))
	s.topology(sr, sr)
	s.start(DefaultOptions())
	s.expect(single)
	s.silent()
	for range 2 {
		s.topology(ha, ha)
		s.expect(two)
		s.silent()
		// The old pods block the new one on the only node, so one may be unavailable once.
		s.topology(sr, sr)
		s.expect(replacing())
		s.silent()
		s.rolledOut("console")
		s.rolledOut("downloads")
		s.expect(single)
		s.silent()
	}
	// A deleted Infrastructure does not change the topology.
	if err := s.admin.Delete(t.Context(), infrastructure()); err != nil {
		t.Fatal(err)
	}
	s.silent()
	s.expect(single)
	s.create(infrastructure())
	s.topology(ha, ha)
	s.expect(two)
	s.silent()
}

func TestStock(t *testing.T) {
	s := newSite(t, infrastructure(), consoleObject(operatorv1.Managed))
	s.topology(sr, sr)
	options := DefaultOptions()
	options.Stock = true
	s.start(options)
	const tolerated = "master unreachable"
	s.expect(operands{&outcome{1, "25%", "25%", "empty", "master", tolerated, "console 1"}, &outcome{1, "25%", "25%", "empty", "master os", tolerated, "downloads 1"}})
	s.silent()
	s.topology(ha, ha)
	s.expect(operands{&outcome{2, "1", "3", "always", "master", tolerated, "console 1"}, &outcome{2, "1", "3", "always", "master os", tolerated, "downloads 1"}})
	s.silent()
	// The module takes over the stock operator's Deployments. The old pods block the new one on the only node, so one may
	// be unavailable once.
	s.stop()
	s.topology(sr, sr)
	s.start(DefaultOptions())
	s.expect(replacing())
	s.silent()
	s.rolledOut("console")
	s.rolledOut("downloads")
	s.expect(single)
	s.silent()
}

func (s *site) rolledOut(name string) {
	s.Helper()
	s.eventually("rolling out "+name, func() string {
		live := deployment(name)
		if !s.find(namespace, name, live) {
			return "no Deployment"
		}
		live.Status = appsv1.DeploymentStatus{ObservedGeneration: live.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
		if err := s.admin.Status().Update(s.Context(), live); err != nil {
			return err.Error()
		}
		return ""
	})
}

func TestManagementState(t *testing.T) {
	s := newSite(t, infrastructure(), consoleObject(operatorv1.Managed))
	s.topology(sr, sr)
	s.start(DefaultOptions())
	s.expect(single)

	s.manage(operatorv1.Unmanaged)
	s.writesNothing(func() {
		s.topology(ha, ha)
		change(s, deployment("console"), func(d *appsv1.Deployment) { *d.Spec.Replicas += 2 })
	})

	s.manage(operatorv1.Removed)
	s.expect(operands{})
	s.expectConditions(map[string]string{"ConsoleDeploymentAvailable": "True Removed", "DownloadsDeploymentDegraded": "False Removed"})
	s.silent()

	s.manage(operatorv1.Force)
	s.expectConditions(map[string]string{"ConsoleDeploymentControllerDegraded": "True SyncError"})
	s.expect(operands{})

	s.manage(operatorv1.Managed)
	s.expect(two)
	s.expectConditions(map[string]string{"ConsoleDeploymentAvailable": "False RollingOut", "ConsoleDeploymentControllerDegraded": "False AsExpected"})
	s.silent()
}

// The downloads Deployment of a static manifest is never written, also not when the console is removed.
func TestDownloadsOfAManifest(t *testing.T) {
	manifest := operand{name: "downloads"}.baseDeployment()
	manifest.Spec.Replicas = ptr.To[int32](2)
	s := newSite(t, infrastructure(), consoleObject(operatorv1.Managed), manifest)
	s.topology(sr, sr)
	s.start(Options{Downloads: false})
	left := operands{single.Console, s.operand("downloads")}
	s.expect(left)
	s.topology(ha, ha)
	left.Console = two.Console
	s.expect(left)
	s.silent()
	s.manage(operatorv1.Removed)
	left.Console = nil
	s.expect(left)
	s.silent()
	live := deployment("downloads")
	if !s.find(namespace, "downloads", live) {
		t.Fatal("downloads has been deleted")
	}
	for _, entry := range live.ManagedFields {
		if entry.Manager == "console-operator" {
			t.Errorf("the operator wrote downloads: %s", entry.FieldsV1)
		}
	}
}

func TestDeploymentsArePutBackAndReported(t *testing.T) {
	s := newSite(t, infrastructure(), consoleObject(operatorv1.Managed))
	s.topology(sr, sr)
	s.start(DefaultOptions())
	s.expect(single)
	change(s, deployment("console"), func(d *appsv1.Deployment) {
		d.Spec.Replicas, d.Spec.Template.Spec.Tolerations = ptr.To[int32](5), nil
	})
	s.expect(single)
	if err := s.admin.Delete(t.Context(), deployment("downloads")); err != nil {
		t.Fatal(err)
	}
	s.expect(single)
	s.silent()

	// A new process reads the generations in the status, and writes nothing.
	s.stop()
	s.server.NoWrites(t, user, func() {
		s.start(DefaultOptions())
		s.settle()
	})

	s.expectConditions(map[string]string{"ConsoleDeploymentAvailable": "False RollingOut", "DownloadsDeploymentAvailable": "False RollingOut"})
	s.rolledOut("console")
	s.expectConditions(map[string]string{
		"ConsoleDeploymentAvailable": "True AsExpected", "ConsoleDeploymentProgressing": "False AsExpected", "ConsoleDeploymentDegraded": "False AsExpected",
		"DownloadsDeploymentAvailable": "False RollingOut",
	})
	s.silent()
}

// The operator waits for its prerequisites.
func TestWaits(t *testing.T) {
	server := patchtest.StartAPIServer(t, patchtest.Options{})
	s := &site{T: t, server: server, admin: server.Admin(t)}
	s.start(DefaultOptions())
	s.silent()
	folder, err := patchtest.APIModuleDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{patchtest.Infrastructures, patchtest.Consoles} {
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
	for _, object := range []client.Object{consoleObject(operatorv1.Managed), infrastructure()} {
		s.eventually("creating "+object.GetName(), func() string {
			if err := s.admin.Create(t.Context(), object.DeepCopyObject().(client.Object)); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	s.topology(sr, sr)
	s.expectConditions(map[string]string{"ConsoleDeploymentControllerDegraded": "True SyncError"}) // no namespace
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	s.expect(single)
	s.expectConditions(map[string]string{"ConsoleDeploymentControllerDegraded": "False AsExpected"})
}
