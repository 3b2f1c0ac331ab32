// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // a dot import, as in specs

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/runner"
	"github.com/solonode/sno/testcluster/embedded"
)

// collectTimeout is short, because the API server may be what has failed.
const collectTimeout = 20 * time.Second

// collect writes objects, events and logs of a cluster into a folder, and prints how events and the logs of controllers
// and operators end: CI keeps the output, but not the folder.
func collect(ctx context.Context, c *embedded.Cluster, folder string) {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	err := c.CopyLogs(folder)
	if run, unread := runner.New(ctx, cluster.Target{Config: c.RESTConfig(), Times: cluster.SimulatedTimes()}, runner.Selection{Tiers: catalogue.Tiers()}); unread != nil {
		err = errors.Join(err, unread)
	} else {
		err = errors.Join(err, run.Collect(ctx, folder))
	}
	GinkgoWriter.Printf("Objects, events and logs of the cluster are in %s (%v)\n", folder, err)
	for _, pattern := range []string{"events.yaml", "*-controller.log", "*-operator.log"} {
		files, _ := filepath.Glob(filepath.Join(folder, pattern)) // the patterns are valid
		for _, file := range files {
			text, _ := os.ReadFile(file) // it was just written
			lines := slices.Collect(strings.Lines(string(text)))
			GinkgoWriter.Printf("== %s ends with:\n", filepath.Base(file))
			for _, line := range lines[max(0, len(lines)-tailLines):] {
				GinkgoWriter.Println(strings.TrimSpace(line[:min(len(line), tailWidth)]))
			}
		}
	}
}

const tailLines, tailWidth = 5, 300
