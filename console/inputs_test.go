// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"errors"
	"testing"

	operatorv1 "github.com/openshift/api/operator/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/console"
)

func TestValidate(t *testing.T) {
	budget := func(name string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-console", Name: name}}
	}
	budgets := func(in *console.Inputs) {
		in.ConsoleBudget, in.DownloadsBudget = budget("console"), budget("downloads")
	}
	wrongVersion, elsewhere := version(), manifest("console")
	wrongVersion.Name, elsewhere.Namespace = "cluster", "default"
	for name, test := range map[string]struct {
		in console.Inputs
		ok bool
	}{
		"no objects":         {console.Inputs{}, true},
		"all objects":        {inputs(managed(""), budgets), true},
		"ClusterVersion":     {console.Inputs{ClusterVersion: wrongVersion}, false},
		"operator":           {console.Inputs{Operator: &operatorv1.Console{ObjectMeta: metav1.ObjectMeta{Name: "console"}}}, false},
		"console elsewhere":  {console.Inputs{Console: elsewhere}, false},
		"console swapped":    {console.Inputs{Console: manifest("downloads")}, false},
		"downloads swapped":  {console.Inputs{Downloads: manifest("console")}, false},
		"console's budget":   {console.Inputs{ConsoleBudget: budget("downloads")}, false},
		"downloads's budget": {console.Inputs{DownloadsBudget: budget("console")}, false},
	} {
		if err := test.in.Validate(); (err == nil) != test.ok || (err != nil && !errors.Is(err, console.ErrInputs)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
