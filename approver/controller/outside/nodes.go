package outside

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// nodes reads nodes by name. There may be thousands, and a request is about one of them: to list them all for each
// request is what costs the stock approver its memory (U-APP-8).
type nodes struct{ client corev1client.NodesGetter }

// get is the node; nil without an error when there is none.
func (n nodes) get(ctx context.Context, name string) (*corev1.Node, error) {
	node, err := n.client.Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading a node: %w", err)
	}
	return node, nil
}

// errNoNode is returned for a node that has to be there.
var errNoNode = errors.New("there is no such node")

// must is get for a node that has to be there.
func (n nodes) must(ctx context.Context, name string) (*corev1.Node, error) {
	node, err := n.get(ctx, name)
	if err == nil && node == nil {
		err = errNoNode
	}
	return node, err
}
