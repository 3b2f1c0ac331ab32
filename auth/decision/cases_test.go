// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/auth/decision"
	"github.com/solonode/sno/auth/internal/fixture"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology/topologytest"
)

func authenticationOwnedBy(manager, fields string) func(*operatorv1.Authentication) {
	return func(a *operatorv1.Authentication) { fixture.AddOwner(a, manager, fields) }
}

func deploymentOwnedBy(manager, fields string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { fixture.AddOwner(d, manager, fields) }
}

func optOut[T metav1.Object](object T) {
	object.SetAnnotations(map[string]string{patch.OptOutAnnotation: "console, auth"})
}

func deleted[T metav1.Object](object T) {
	object.SetDeletionTimestamp(ptr.To(metav1.NewTime(time.Unix(1, 0))))
}

// managedFields of a field without a schema, by key or as one value.
const (
	perKey   = `{"f:spec":{"f:unsupportedConfigOverrides":{"f:` + fixture.Key + `":{}}}}`
	perOther = `{"f:spec":{"f:unsupportedConfigOverrides":{"f:oauthConfig":{}}}}`
	asOne    = `{"f:spec":{"f:unsupportedConfigOverrides":{}}}`
)

// overrideInputs are of a single node whose release needs the override.
func overrideInputs(overrides string, change ...func(*operatorv1.Authentication)) decision.Inputs {
	a := &operatorv1.Authentication{ObjectMeta: metav1.ObjectMeta{Name: "cluster", UID: "one", ResourceVersion: "1"}}
	a.Spec.UnsupportedConfigOverrides.Raw = []byte(overrides)
	fixture.AddOwner(a, "cluster-version-operator", `{"f:spec":{"f:managementState":{}}}`)
	for _, f := range change {
		f(a)
	}
	return decision.Inputs{Cluster: ptr.To(fixture.ClusterOf(topologytest.SR, topologytest.SR)), Authentication: a, ClusterVersion: running("4.7.13")}
}

func running(release string) *configv1.ClusterVersion {
	return &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{Desired: configv1.Release{Version: release}}}
}

func deploymentInputs(controlPlane, infrastructure configv1.TopologyMode, nodes int, server, apiServer *appsv1.Deployment) decision.Inputs {
	in := decision.Inputs{Cluster: ptr.To(fixture.ClusterOf(controlPlane, infrastructure)), OAuthServer: server, OAuthAPIServer: apiServer}
	for range nodes {
		in.ControlPlaneNodes = append(in.ControlPlaneNodes, fixture.ControlPlaneNode())
	}
	return in
}
