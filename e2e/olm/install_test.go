// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/fakes/etcdmembers"
	"github.com/solonode/sno/testcluster/scenario"
)

const timeout = 3 * time.Minute

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts an old release on one node, where five modules have something to patch and two claim overrides.
func start(t *testing.T) (s *framework.ScenarioCluster, arguments []string) {
	t.Helper()
	s, err := framework.Start(t.Context(), framework.Config{
		Scenario: "ha", Release: scenario.OldRelease, VersionOperator: true, QuorumGuard: true,
		Hosts: map[framework.Module][]string{framework.Ingress: nil, framework.Console: {"--downloads=false"}, framework.Auth: nil},
	})
	must(t, err)
	t.Cleanup(s.Stop)
	etcd, err := etcdmembers.Start(t.Context(), s.Cluster, 1)
	must(t, err)
	must(t, s.SetTopology(t.Context(), configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode))
	for _, module := range framework.AllModules() {
		must(t, s.Prepare(t.Context(), module))
	}
	return s, []string{"--etcd-endpoints=" + etcd.Endpoints[0]}
}

// settled waits until every module has settled, and returns the conditions and the owners of the patched fields.
func settled(t *testing.T, s *framework.ScenarioCluster) map[framework.Module]framework.Condition {
	t.Helper()
	conditions := map[framework.Module]framework.Condition{}
	for _, module := range framework.AllModules() {
		condition, err := s.WaitReason(t.Context(), module, timeout, "AsExpected")
		if err != nil {
			t.Fatalf("%s: %v\n%s", module, err, log(t, s))
		}
		conditions[module] = condition
	}
	if text := log(t, s); strings.Contains(text, "is forbidden") {
		t.Errorf("a request is forbidden:\n%s", text)
	}
	return conditions
}

func log(t *testing.T, s *framework.ScenarioCluster) string {
	t.Helper()
	text, err := os.ReadFile(s.Cluster.Program(programs.KubectlSNO.Name).LogPath())
	must(t, err)
	return string(text)
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v: %v", what, err, last)
	}
}

// TestBundle installs the bundle on a cluster and config/all on another: the conditions are the same.
func TestBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts two clusters; make proof runs it")
	}
	root, err := programs.Root(t.Context())
	must(t, err)
	folder := t.TempDir()
	must(t, writeBundle(t.Context(), root, folder))
	version, err := readBundle(folder)
	must(t, err)

	var bundled map[framework.Module]framework.Condition
	t.Run("bundle", func(t *testing.T) {
		t.Setenv(nameVariable, version.Metadata.Name)
		s, arguments := start(t)
		must(t, s.Cluster.InstallCRDs(t.Context(), nil, []string{filepath.Join(root, filepath.FromSlash(conditionCRD))}))
		must(t, version.Install(t.Context(), s.Cluster.Client()))
		deployment := version.Spec.Install.Spec.Deployments[0]
		eventually(t, "the Deployment is available", func(ctx context.Context) error {
			live := &appsv1.Deployment{}
			err := s.Cluster.Client().Get(ctx, client.ObjectKey{Namespace: framework.SystemNamespace, Name: deployment.Name}, live)
			if err == nil && live.Status.AvailableReplicas != 1 {
				err = fmt.Errorf("status %+v", live.Status)
			}
			return err
		})
		pod := deployment.Spec.Template.Spec
		_, err := s.RunInstalled(t.Context(), programs.KubectlSNO, pod.ServiceAccountName, pod.Containers[0].Args, arguments...)
		must(t, err)
		bundled = settled(t, s)

		upgradeable := func(want, reason string, parts ...string) {
			t.Helper()
			eventually(t, "Upgradeable is "+want, func(ctx context.Context) error {
				live := version.Condition(framework.SystemNamespace)
				if err := s.Cluster.Client().Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
					return err
				}
				conditions, _, err := unstructured.NestedSlice(live.Object, "spec", "conditions")
				if err != nil || len(conditions) != 1 {
					return errors.Join(err, fmt.Errorf("conditions %v", conditions))
				}
				condition := conditions[0].(map[string]any)
				message, _ := condition["message"].(string)
				for _, part := range parts {
					if !strings.Contains(message, part) {
						return fmt.Errorf("the message %q lacks %q", message, part)
					}
				}
				if condition["type"] != "Upgradeable" || condition["status"] != want || condition["reason"] != reason {
					return fmt.Errorf("condition %v", condition)
				}
				return nil
			})
		}
		upgradeable("False", "OverrideClaimed", "Deployment openshift-console/downloads (module console)",
			"Deployment openshift-etcd/etcd-quorum-guard (module etcdguard)", "docs/undo.md#before-an-upgrade")
		for _, module := range []framework.Module{framework.Console, framework.EtcdGuard} {
			object, err := s.Object(t.Context(), module)
			must(t, err)
			change := client.MergeFrom(object.DeepCopy())
			object.SetAnnotations(map[string]string{patch.OptOutAnnotation: "all"})
			must(t, s.Cluster.Client().Patch(t.Context(), object, change))
		}
		upgradeable("True", "AsExpected")
		if text := log(t, s); strings.Contains(text, "is forbidden") {
			t.Errorf("a request is forbidden:\n%s", text)
		}
	})
	if t.Failed() {
		return
	}
	t.Run("config/all", func(t *testing.T) {
		s, arguments := start(t)
		_, err := s.RunAllControllers(t.Context(), arguments...)
		must(t, err)
		if diff := cmp.Diff(settled(t, s), bundled); diff != "" {
			t.Errorf("conditions (-config/all +bundle):\n%s", diff)
		}
	})
}
