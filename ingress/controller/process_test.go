package controller_test

import (
	"fmt"

	"github.com/solonode/sno/patch/patchtest"
)

// process is one running controller.
type process struct {
	*cluster
	*patchtest.Process
}

// start runs a controller as the service account, without leader election unless asked for.
func (c *cluster) start(args ...string) *process {
	c.Helper()
	return c.startAs(account, "", args...)
}

// startAs runs one as another account, at another address than the API server's own where that is not empty.
func (c *cluster) startAs(account, address string, args ...string) *process {
	c.Helper()
	return &process{c, patchtest.Start(c, append([]string{
		"--kubeconfig=" + c.server.AccountKubeconfig(c, systemNamespace, account, address),
		"--leader-elect=false", "--leader-elect-resource-namespace=" + systemNamespace,
	}, args...)...)}
}

// touch has the host write its status of the IngressController n times, and waits each time until the controller has looked.
func (p *process) touch(n int) {
	p.Helper()
	p.LooksAfter(n, "ingress", func(beat int) {
		p.patch(defaultController(), stock, fmt.Sprintf(`{"status":{"availableReplicas":%d}}`, beat), "status")
	})
}
