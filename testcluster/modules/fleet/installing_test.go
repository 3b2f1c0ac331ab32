// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/fleet/feedback"
	"github.com/solonode/sno/install/monitor"
	"github.com/solonode/sno/install/phase"
	"github.com/solonode/sno/testcluster/apiserver"
)

// What sno-install publishes is what a hub reads.
func TestInstalling(t *testing.T) {
	server := shared.Server(t)
	kube := kubernetes.NewForConfigOrDie(server.Config(t, "installer", "system:masters"))
	all := []phase.Status{{Command: "post-reboot", State: phase.Running, Phases: []phase.Step{
		{Name: "api", State: phase.Done}, {Name: "operators", State: phase.Running, WaitingFor: "etcd"},
	}}}
	for status, want := range map[string]*feedback.Installing{
		monitor.Installing: {Phase: "post-reboot: phase operators (2 of 2)", Message: "etcd"}, monitor.Complete: nil,
	} {
		apiserver.NoError(t, monitor.Publish(t.Context(), kube, all, status))
		object, option := feedback.Installation()
		apiserver.NoError(t, server.Admin(t).Get(t.Context(), client.ObjectKeyFromObject(object), object))
		reported := workv1.ManifestCondition{StatusFeedbacks: workv1.StatusFeedbackResult{Values: values(option, object)}, Conditions: []metav1.Condition{}}
		reported.ResourceMeta = workv1.ManifestResourceMeta{Resource: "configmaps", Namespace: object.GetNamespace(), Name: object.GetName()}
		work := &workv1.ManifestWork{}
		work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{reported}
		if diff := cmp.Diff(want, feedback.Read(work).Installing); diff != "" {
			t.Errorf("%s (-want +got):\n%s", status, diff)
		}
	}
}
