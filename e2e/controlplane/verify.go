package controlplane

import (
	"context"
	"errors"
	"fmt"
)

// Result is what a control plane has shown.
type Result struct {
	Start Start
	// Checks are those of /readyz, all of which were ok.
	Checks []string
	// StaticPods are the mirror pods, all of which are Ready.
	StaticPods []string
	// Secrets counts those in etcd, and Encrypted those of them that were encrypted by their first write.
	Secrets, Encrypted int
}

// components is how many static pods a control plane has.
const components = 4

// errControl is returned when a control plane that encrypts nothing passes for one that does.
var errControl = errors.New("a Secret that is in plain text was not seen")

// Verify holds that the node is Ready, that its static pods are, that a Deployment's pod runs, and that the API server says that all its checks are ok; and that
// Secrets are encrypted in etcd, or that they are seen not to be.
func (n *Node) Verify(ctx context.Context, start Start, encrypted bool) (Result, error) {
	s := Result{Start: start}
	if err := n.WaitForNodeReady(ctx); err != nil {
		return s, err
	}
	n.say("the node is Ready")
	if err := n.RunDeployment(ctx); err != nil {
		return s, err
	}
	n.say("a Deployment's pod runs")
	var err error
	if s.StaticPods, err = n.WaitForMirrorPods(ctx); err != nil {
		return s, err
	}
	n.say("%d static pods are Ready", len(s.StaticPods))
	if s.Checks, err = n.Readiness(ctx); err != nil {
		return s, err
	}
	n.say("%d checks of the API server's readiness are ok", len(s.Checks))
	secrets, err := n.Secrets(ctx)
	if err != nil {
		return s, err
	}
	plain := inPlain(secrets)
	s.Secrets, s.Encrypted = len(secrets), len(secrets)-len(plain)
	n.say("%d of %d Secrets in etcd are encrypted", s.Encrypted, s.Secrets)
	switch {
	case encrypted && len(plain) > 0:
		return s, fmt.Errorf("%w: %w", ErrNotEncryptedAtWrite, errors.Join(plain...))
	case !encrypted && len(plain) != len(secrets):
		return s, errControl
	}
	return s, nil
}
