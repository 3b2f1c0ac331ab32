// SPDX-License-Identifier: Apache-2.0

package plain

import "testing"

// Reserved names are refused, similar names are not.
func TestReservedNames(t *testing.T) {
	for name, reserved := range map[string]bool{
		"localhost": true, "a.localhost": true, "kubernetes": true, "kubernetes.default": true, "openshift": true, "openshift.default": true,
		"kubernetes.default.svc": true, "a.svc": true, "a.b.svc.cluster.local": true,
		"localhost-0": false, "kubernetes-0": false, "openshift.example.com": false, "svc": false, "a.svc.example.com": false, "default": false,
	} {
		if got := InvalidHost(name) != ""; got != reserved {
			t.Errorf("%s: %t (%s)", name, got, InvalidHost(name))
		}
	}
}
