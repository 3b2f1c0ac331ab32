// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"encoding/base64"
	"net"
	"net/url"
	"strconv"

	"github.com/coreos/ignition/v2/config/v3_6/types"
)

// MachineConfigServerPort is the TLS port of the machine-config server (U-INS-17).
const MachineConfigServerPort = 22623

// Pointer returns a config that fetches the config of a pool, such as worker, from the machine-config server at host, a
// name or an address (R-WRK-1, U-INS-17). It trusts only the CA, in PEM.
func Pointer(host, pool string, ca []byte) ([]byte, error) {
	source := (&url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(MachineConfigServerPort)), Path: "/config/" + pool}).String()
	authority := "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString(ca)
	var c types.Config
	c.Ignition.Config.Merge = []types.Resource{{Source: &source}}
	c.Ignition.Security.TLS.CertificateAuthorities = []types.Resource{{Source: &authority}}
	return encode(c, specs[0].version)
}
