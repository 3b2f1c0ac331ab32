// SPDX-License-Identifier: Apache-2.0

package etcdguard_test

import (
	"testing"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch/admission"
	"github.com/solonode/sno/patch/golden"
)

func TestPolicies(t *testing.T) {
	golden.File(t, "config/admission/policies.yaml", admission.Policies("etcdguard-controller",
		admission.Overrides(etcdguard.Overrides()),
		admission.Conditions("operator.openshift.io", "etcds", etcdguard.ConditionPrefix),
	))
}
