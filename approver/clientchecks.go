package approver

import (
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// Who asks for the client certificate of a node that joins.
const (
	bootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
	tokenPrefix  = "system:bootstrap:"
	tokenIDLen   = 6
)

var (
	bootstrapperGroups = []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"}
	tokenGroups        = []string{"system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:authenticated"}
)

// isToken tells whether the user is a bootstrap token, and may be one.
func (in *Inputs) isToken() bool {
	id, ok := strings.CutPrefix(in.Request.Username, tokenPrefix)
	return in.Policy.BootstrapTokens && ok && len(id) == tokenIDLen && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

func checkBootstrapper(in *Inputs) *fault {
	if in.Request.Username == bootstrapper || in.isToken() {
		return nil
	}
	return &fault{ReasonRequestorWrong, fmt.Sprintf("%q asks for it; it must be %s", in.Request.Username, bootstrapper)}
}

func checkBootstrapperGroups(in *Inputs) *fault {
	if in.isToken() {
		return checkGroups(in.Request.Groups, tokenGroups)
	}
	return checkGroups(in.Request.Groups, bootstrapperGroups)
}

func checkClientUsages(in *Inputs) *fault {
	return checkUsages(in.Request.Usages, certificatesv1.UsageClientAuth)
}

func checkClientContents(in *Inputs) *fault { return checkContents(in.Request.X509, nil, nil) }

// checkInventory is the second source: the name is known, and its window is open now and was when the request was made. A request that
// lay in wait for the window is not the machine that was just switched on.
func checkInventory(in *Inputs) *fault {
	name := in.Request.Node()
	node := in.Inventory.Node(name)
	switch {
	case node == nil:
		return &fault{ReasonNotInInventory, fmt.Sprintf("%q is not in the inventory", name)}
	case node.Window == nil:
		return &fault{ReasonNoWindow, fmt.Sprintf("The inventory has no window in which %q may join", name)}
	case in.Now.Before(node.Window.NotBefore):
		return &fault{ReasonWindowNotOpen, fmt.Sprintf("%q may not join before %s", name, timeText(node.Window.NotBefore))}
	case !in.Now.Before(node.Window.NotAfter):
		return &fault{ReasonWindowClosed, fmt.Sprintf("%q may not join any more since %s", name, timeText(node.Window.NotAfter))}
	case in.Request.Created.Before(node.Window.NotBefore):
		return &fault{ReasonRequestedBeforeWindow, fmt.Sprintf("The request was made at %s, before the window of %q opened at %s; "+
			"delete it, and the kubelet makes another", timeText(in.Request.Created), name, timeText(node.Window.NotBefore))}
	}
	return nil
}

func checkNodeAbsent(in *Inputs) *fault {
	name := in.Request.Node()
	switch node := in.Inventory.Node(name); {
	case in.Nodes == nil:
		return nodesUnknown()
	case in.Nodes.Has(name) && (node == nil || !node.Rejoin):
		return &fault{ReasonNodeExists, fmt.Sprintf("There is a Node %q already, and the inventory does not say that it may rejoin", name)}
	}
	return nil
}

func checkCount(in *Inputs) *fault {
	most := 1
	if node := in.Inventory.Node(in.Request.Node()); node != nil {
		most = node.Count
	}
	approved := in.Approvals[in.Request.Node()]
	switch {
	case in.Approvals == nil:
		return &fault{ReasonApprovalsUnknown, "The requests that were approved already could not be read"}
	case approved < most:
		return nil
	}
	return &fault{ReasonCountUsedUp, fmt.Sprintf("%d were approved for this node already, and the inventory allows %d", approved, most)}
}

func nodesUnknown() *fault {
	return &fault{ReasonNodesUnknown, "The Nodes of the cluster could not be read"}
}
