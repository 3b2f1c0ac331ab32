package main

import (
	"context"

	"github.com/solonode/sno/e2e/conformance"
	"github.com/solonode/sno/e2e/embedded"
	"github.com/solonode/sno/e2e/existing"
	"github.com/solonode/sno/e2e/extension"
)

// fromKubeconfig finds a cluster.
func fromKubeconfig(ctx context.Context, o extension.ClusterOptions) (conformance.Target, error) {
	return existing.Target(ctx, existing.Options{Kubeconfig: o.Kubeconfig, Scenario: o.Scenario, Image: o.Image, Tiers: o.Tiers, Progress: o.Progress})
}

// made makes one, out of the repository that the program was built from.
func made(ctx context.Context, o extension.ClusterOptions) (conformance.Target, error) {
	return embedded.Start(ctx, embedded.Options{Scenario: o.Scenario, Variant: embedded.Variant(o.Variant), Progress: o.Progress})
}
