// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/patch/controller"
)

// Other namespaces have Deployments with the same names.
func TestMessagesNameTheNamespace(t *testing.T) {
	for object, deployment := range map[controller.Object]string{
		serverObject: "Deployment openshift-authentication/oauth-openshift", apiServerObject: "Deployment openshift-oauth-apiserver/apiserver",
	} {
		messages := deploymentMessages(object)
		want := []string{"The " + deployment, "the " + deployment + " would get the shape of the topology"}
		if diff := cmp.Diff(want, []string{messages.Subject, messages.WouldApply}); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
	}
}
