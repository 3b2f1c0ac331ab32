package ignition

import (
	"encoding/base64"
	"net"
	"net/url"
	"strconv"

	"github.com/coreos/ignition/v2/config/v3_6/types"
)

// MachineConfigServerPort is where the machine-config server serves configs by TLS (U-INS-17).
const MachineConfigServerPort = 22623

// Pointer returns the config of a machine that takes its own from the machine-config server of a cluster: that of a pool, such as worker,
// at a host, which may be a name or an address (R-WRK-1, U-INS-17). It trusts only the certificates in PEM of the server's CA.
func Pointer(host, pool string, ca []byte) ([]byte, error) {
	source := (&url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(MachineConfigServerPort)), Path: "/config/" + pool}).String()
	authority := "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString(ca)
	var c types.Config
	c.Ignition.Config.Merge = []types.Resource{{Source: &source}}
	c.Ignition.Security.TLS.CertificateAuthorities = []types.Resource{{Source: &authority}}
	return encode(c, specs[0].version)
}
