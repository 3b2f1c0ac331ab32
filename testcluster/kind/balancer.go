// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// balancerImage is kind's load balancer for several API servers; the version is kind's.
const balancerImage = "docker.io/envoyproxy/envoy:v1.36.2"

const balancerLabel = "sno.solonode.github.io/balancer"

//go:embed envoy.sh
var envoy string

// ensureBalancer ensures that the image exists. If it is neither loaded nor can be pulled, an image of the nodes'
// image with HAProxy gets its name until forget is called.
func (c *Cluster) ensureBalancer(ctx context.Context, nodeImage string) (forget func(), err error) {
	keep := func() {}
	there, err := c.engine.HasImage(ctx, balancerImage)
	if err != nil || there {
		return keep, err
	}
	asking, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	if _, err := c.engine.Output(asking, "manifest", "inspect", balancerImage); err == nil {
		return keep, nil // kind pulls it
	}
	c.say("Making a load balancer in place of %s, which cannot be pulled", balancerImage)
	folder, err := os.MkdirTemp("", "sno-balancer-")
	if err != nil {
		return keep, fmt.Errorf("make the load balancer: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	// The label is first, so that every intermediate image has it: after an interruption only one of those may exist.
	recipe := "FROM " + nodeImage + "\nLABEL " + balancerLabel + "=\nCOPY envoy /usr/local/bin/envoy\nENTRYPOINT []\nSTOPSIGNAL SIGTERM\n"
	for name, text := range map[string]string{"Dockerfile": recipe, "envoy": envoy} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil { //nolint:gosec // it is a program
			return keep, fmt.Errorf("make the load balancer: %w", err)
		}
	}
	if _, err := c.engine.Output(ctx, "build", "--quiet", "--tag", balancerImage, folder); err != nil {
		return keep, fmt.Errorf("make the load balancer: %w", err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
		defer cancel()
		// Only the name is removed; the container keeps its image until Delete.
		if _, err := c.engine.Output(ctx, "rmi", "--force", "--no-prune", balancerImage); err != nil {
			c.say("%v", err)
		}
	}, nil
}
