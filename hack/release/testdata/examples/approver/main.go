// SPDX-License-Identifier: Apache-2.0

// Command approver decides on a certificate signing request as a machine approver does.
package main

import (
	"fmt"
	"log"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/inventory"
	"github.com/solonode/sno/approver/requests"
	"github.com/solonode/sno/topology"
)

func main() {
	cluster := topology.Cluster{
		ControlPlane:   topology.ReadingOf(configv1.HighlyAvailableTopologyMode),
		Infrastructure: topology.ReadingOf(configv1.HighlyAvailableTopologyMode),
	}
	enabled, err := approver.Enabled(approver.Host{Cluster: cluster, Machines: approver.MachinesPresent})
	if err != nil {
		log.Fatal(err)
	}
	known, err := inventory.New()
	if err != nil {
		log.Fatal(err)
	}
	verdict := requests.Decide(requests.Inputs{Request: &certificatesv1.CertificateSigningRequest{}, Inventory: known, Now: time.Now()})
	fmt.Println(enabled, verdict.Approve)
}
