// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"encoding/json"
	"time"

	ignition "github.com/coreos/ignition/v2/config/v3_2"
	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // a dot import, as in specs
	. "github.com/onsi/gomega"    //nolint:staticcheck // the same
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	mcfgv1ac "github.com/openshift/client-go/machineconfiguration/applyconfigurations/machineconfiguration/v1"
	"github.com/vincent-petithory/dataurl"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/topology"
)

// GracefulShutdown returns what machineconfig decides for a cluster with only this node and these pods: fields of the
// kubelet's configuration, and a file for logind, as Ignition reads it.
func GracefulShutdown(node corev1.Node, pods []corev1.Pod, bound time.Duration) (fields map[string]any, file string, content []byte) {
	GinkgoHelper()
	node.Labels = map[string]string{machineconfig.MasterRole: ""}
	pool := mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: machineconfig.MasterPool, Labels: map[string]string{machineconfig.MasterPoolLabel: ""}}}
	pool.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}}
	single := topology.ReadingOf(configv1.SingleReplicaTopologyMode)
	decided := decision.Decide(decision.Inputs{
		Inputs: machineconfig.Inputs{Cluster: &topology.Cluster{ControlPlane: single, Infrastructure: single}, Nodes: []corev1.Node{node}, Pods: pods},
		Pools:  []mcfgv1.MachineConfigPool{pool}, ShutdownBound: bound,
	})
	Expect(decided.Result).To(BeNil())
	Expect(json.Unmarshal(decided.KubeletConfig.Intent.(*mcfgv1ac.KubeletConfigApplyConfiguration).Spec.KubeletConfig.Raw, &fields)).To(Succeed())
	Expect(fields).NotTo(BeEmpty())
	config, report, err := ignition.Parse(decided.MachineConfig.Intent.(*mcfgv1ac.MachineConfigApplyConfiguration).Spec.Config.Raw)
	Expect(err).NotTo(HaveOccurred())
	Expect(report.Entries).To(BeEmpty())
	Expect(config.Storage.Files).To(HaveLen(1))
	its := config.Storage.Files[0]
	return fields, its.Path, suite.Must(dataurl.DecodeString(ptr.Deref(its.Contents.Source, ""))).Data
}
