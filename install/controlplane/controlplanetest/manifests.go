// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/credentials"
	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/manifests"
	"github.com/solonode/sno/install/node"
)

const file = "../installconfig/testdata/install-config.yaml"

// ConfigFiles returns the settings and manifests, including the user's, that create writes to a machine in profile
// kubernetes.
func ConfigFiles(ctx context.Context, purpose installconfig.Purpose, settingsFile, folder string, user ...files.File) ([]files.File, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the install config: %w", err)
	}
	c, _, err := installconfig.Read(file, text, installconfig.Options{Purpose: purpose})
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	state, err := credentials.New(ctx, credentials.Options{Profile: inputs.Kubernetes, Name: c.Name, Domain: c.Domain(), Validity: time.Hour, Now: time.Now()})
	if err != nil {
		return nil, err //nolint:wrapcheck // of a test
	}
	generated, err := manifests.Generate(manifests.Input{Config: c, Profile: inputs.Kubernetes, ClusterID: state.ClusterID, InfraID: state.InfraID})
	if err != nil {
		return nil, err //nolint:wrapcheck // of a test
	}
	all, err := manifests.Merge(generated, state.Manifests, user)
	if err != nil {
		return nil, err //nolint:wrapcheck // of a test
	}
	for i := range all {
		all[i].Path = folder + "/" + all[i].Path
	}
	settings, err := (&node.Settings{
		Profile: string(inputs.Kubernetes), ClusterName: c.Name, BaseDomain: c.BaseDomain, KubernetesVersion: "1.35.2", Validity: "1h",
		Created: time.Now().UTC().Format(time.RFC3339), MachineNetworks: c.Networking.MachineNetwork,
	}).Encode()
	return append(all, files.File{Path: settingsFile, Mode: 0o600, Content: settings}), err //nolint:wrapcheck // of a test
}
