package controller

import (
	"fmt"

	"github.com/solonode/sno/patch/patchtest"
)

// process is one running controller.
type process struct {
	*cluster
	*patchtest.Process
}

// start runs the program as the controller's service account, without leader election unless asked for.
func (c *cluster) start(args ...string) *process {
	c.Helper()
	return &process{c, patchtest.Start(c, append([]string{
		"--kubeconfig=" + c.server.AccountKubeconfig(c, systemNamespace, account, ""),
		"--leader-elect=false", "--leader-elect-resource-namespace=" + systemNamespace,
	}, args...)...)}
}

// touch has somebody write to the Deployments n times, and waits each time until the controller has looked at that.
func (p *process) touch(n int) {
	p.Helper()
	p.LooksAfter(n, "console", func(beat int) {
		p.patch(deployment("console").Unstructured(), "oc", fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, beat)) // an annotation would be a new generation
	})
}
