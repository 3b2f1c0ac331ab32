// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
)

// Result is the result of Verify.
type Result struct {
	Start Start
	// Checks are those of /readyz, all of which were ok.
	Checks     []string
	StaticPods []string
	// Secrets is the number of Secrets in etcd, and Encrypted how many their first write has encrypted.
	Secrets, Encrypted int
}

const components = 4

// errControl means that unencrypted Secrets were not detected.
var errControl = errors.New("a Secret in plain text was not detected")

// Verify checks that the node and its static pods are Ready, that a Deployment's pod runs, and that all checks of
// /readyz are ok. Secrets must be encrypted in etcd, or as a negative control all be detected as unencrypted.
func (n *Node) Verify(ctx context.Context, start Start, encrypted bool) (Result, error) {
	s := Result{Start: start}
	if err := n.WaitForNodeReady(ctx); err != nil {
		return s, err
	}
	n.logf("the node is Ready")
	if err := n.RunDeployment(ctx); err != nil {
		return s, err
	}
	n.logf("a Deployment's pod runs")
	var err error
	if s.StaticPods, err = n.WaitForMirrorPods(ctx); err != nil {
		return s, err
	}
	n.logf("%d static pods are Ready", len(s.StaticPods))
	if s.Checks, err = n.Readiness(ctx); err != nil {
		return s, err
	}
	n.logf("%d checks of the API server's readiness are ok", len(s.Checks))
	secrets, err := n.Secrets(ctx)
	if err != nil {
		return s, err
	}
	plain := inPlain(secrets)
	s.Secrets, s.Encrypted = len(secrets), len(secrets)-len(plain)
	n.logf("%d of %d Secrets in etcd are encrypted", s.Encrypted, s.Secrets)
	switch {
	case encrypted && len(plain) > 0:
		return s, fmt.Errorf("%w: %w", ErrNotEncryptedAtWrite, errors.Join(plain...))
	case !encrypted && len(plain) != len(secrets):
		return s, errControl
	}
	return s, nil
}
