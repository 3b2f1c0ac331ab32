package controller

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solonode/sno/patch/patchtest"
)

// account is the service account of config/rbac.
const account = "etcdguard-controller"

// accountUser is what the audit log calls it.
var accountUser = patchtest.AccountUser(systemNamespace, account)

// process is the program, running with the permissions of config/rbac and no others.
type process struct {
	*cluster
	*patchtest.Process
}

// permit gives the account what config/rbac gives it. What is there already stays, since a test may have changed it.
func (c *cluster) permit() {
	c.Helper()
	for _, u := range patchtest.Manifests(c, "../config", "rbac/service_account.yaml", "rbac/role.yaml", "rbac/role_binding.yaml") {
		if err := c.admin.Create(c.Context(), u); err != nil && !apierrors.IsAlreadyExists(err) {
			c.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
}

// start runs the program with the permissions of config/rbac, without leader election.
func (c *cluster) start(args ...string) *process {
	c.Helper()
	c.permit()
	return c.startAs(c.server.AccountKubeconfig(c, systemNamespace, account, ""), append([]string{"--leader-elect=false"}, args...)...)
}

// startAs runs it as whom the kubeconfig says.
func (c *cluster) startAs(kubeconfig string, args ...string) *process {
	c.Helper()
	if c.endpoint == "" {
		c.endpoint = c.etcd.serve(c)
	}
	return &process{c, patchtest.Start(c, append([]string{"--kubeconfig=" + kubeconfig, "--image=cli", "--etcd-endpoints=" + c.endpoint}, args...)...)}
}

// touch has somebody write to the ClusterVersion n times, and waits each time until the controller has looked.
func (p *process) touch(n int) {
	p.Helper()
	p.LooksAfter(n, "etcdguard", func(beat int) {
		p.edit(versionObject.Unstructured(), "oc", fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, beat))
	})
}

// restsThrough fails for any write request of the program while others write.
func (p *process) restsThrough(n int) {
	p.Helper()
	p.touch(1)
	p.server.NoWrites(p, accountUser, func() { p.touch(n) })
}
