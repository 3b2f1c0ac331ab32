// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed payload.txt
var payloadNamespaces string

// PayloadNamespaces are the sorted namespaces of the release payload on all platforms. Other openshift-* namespaces
// belong to add-ons such as storage or GitOps, which need not follow the topology; so does openshift-operators, which
// comes with the payload.
func PayloadNamespaces() []string {
	return strings.Fields(payloadNamespaces)
}

// payload decides which namespaces belong to OpenShift, and records those that it has met.
type payload struct {
	chosen []string
	// others begin with openshift- and do not count.
	here, others map[string]bool
}

func newPayload(chosen []string) *payload {
	if len(chosen) == 0 {
		chosen = PayloadNamespaces()
	}
	return &payload{chosen: chosen, here: map[string]bool{}, others: map[string]bool{}}
}

func (p *payload) has(namespace string) bool {
	has := slices.Contains(p.chosen, namespace)
	switch {
	case has:
		p.here[namespace] = true
	case strings.HasPrefix(namespace, "openshift-") && !strings.HasPrefix(namespace, "openshift-must-gather-"): // temporary
		p.others[namespace] = true
	}
	return has
}

// InPayload reports whether a namespace is one of the chosen ones, by default PayloadNamespaces.
func InPayload(chosen []string, namespace string) bool { return newPayload(chosen).has(namespace) }
