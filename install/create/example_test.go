// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/create"
	"github.com/solonode/sno/install/credentials"
	"github.com/solonode/sno/install/ignition"
	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/node"
)

// With the program in its image, a machine needs only this config to become a cluster of its own.
func ExampleAllInOne() {
	text, err := allInOne(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	config, err := ignition.Parse("aio.ign", text)
	fmt.Println(config.Version, err)
	// Output: 3.2.0 <nil>
}

func allInOne(ctx context.Context) ([]byte, error) {
	const file = "../installconfig/testdata/install-config.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	config, _, err := installconfig.Read(file, text, installconfig.Options{Purpose: installconfig.AllInOne})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	state, err := credentials.New(ctx, credentials.Options{
		Profile: inputs.Kubernetes, Name: config.Name, Domain: config.Domain(), Validity: inputs.DefaultValidity, Now: now,
	})
	if err != nil {
		return nil, err
	}
	return create.AllInOne(create.Input{Config: config, State: state, Settings: node.Settings{
		Profile: string(inputs.Kubernetes), KubernetesVersion: "1.35.2", Validity: inputs.DefaultValidity.String(), ProgramInImage: true, Created: now.Format(time.RFC3339),
	}})
}
