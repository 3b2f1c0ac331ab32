// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/auth/decision"
	"github.com/solonode/sno/auth/internal/fixture"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology/topologytest"
)

func TestReplicasByTolerations(t *testing.T) {
	in := deploymentInputs(topologytest.HA, topologytest.HA, 3, fixture.Server(), fixture.APIServer())
	in.ControlPlaneNodes[0].Spec.Taints = []corev1.Taint{{Key: "example.com/reserved", Effect: corev1.TaintEffectNoSchedule}}
	in.OAuthAPIServer.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "example.com/reserved", Operator: corev1.TolerationOpExists}}
	got := decision.Decide(in)
	for want, step := range map[string]patch.Step{`"replicas":2,`: got.OAuthServer, `"replicas":3,`: got.OAuthAPIServer} {
		if intent := fixture.Text(t, step.Intent); !strings.Contains(intent, want) {
			t.Errorf("%s, want %s", intent, want)
		}
	}
}
