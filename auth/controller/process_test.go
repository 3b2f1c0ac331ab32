package controller

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solonode/sno/patch/patchtest"
)

// account is the service account of config/rbac.
const account = "auth-controller"

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

func (c *cluster) start(args ...string) *process {
	c.Helper()
	c.permit()
	return &process{c, patchtest.Start(c, append([]string{
		"--kubeconfig=" + c.server.AccountKubeconfig(c, systemNamespace, account, ""), "--leader-elect=false",
	}, args...)...)}
}

// touch changes a node, as its kubelet does, n times, and waits each time until the controller has looked.
func (p *process) touch(n int) {
	p.Helper()
	p.LooksAfter(n, "auth", func(beat int) {
		p.patch(object("v1", "Node", "", "master-0"), "kubelet", fmt.Sprintf(`{"metadata":{"annotations":{"test.example.com/beat":"%d"}}}`, beat))
	})
}

// restsThrough fails for any write request of the program while nodes change.
func (p *process) restsThrough(n int) {
	p.Helper()
	p.touch(1)
	p.server.NoWrites(p, accountUser, func() { p.touch(n) })
}
