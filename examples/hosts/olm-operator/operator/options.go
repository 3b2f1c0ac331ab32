// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"flag"
	"fmt"

	"github.com/solonode/sno/topology"
)

// ErrOptions is returned for invalid flags.
var ErrOptions = errors.New("invalid flags")

// Options are the operator's flags.
type Options struct {
	// Namespace is that of the operator and its operand.
	Namespace string
	// Name is the name of the operand's objects.
	Name, Image string
	// Pool is where the operand runs.
	Pool topology.Pool
	// LeaderElect elects a leader among several processes. Identity is that of this one.
	LeaderElect bool
	Identity    string
}

// DefaultOptions returns the defaults of the flags.
func DefaultOptions() Options {
	return Options{Name: "example-server", Image: "registry.example.com/example/server:1", Pool: topology.WorkerPool, LeaderElect: true}
}

// BindFlags adds the flags, with the current options as defaults.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of the operator and its operand; by default that of the pod or of the kubeconfig.")
	flags.StringVar(&o.Name, "name", o.Name, "Name of the operand's Deployment and PodDisruptionBudget.")
	flags.StringVar(&o.Image, "image", o.Image, "Image of the operand.")
	flags.StringVar((*string)(&o.Pool), "pool", string(o.Pool), "Nodes of the operand: worker, or master for the control plane.")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Write only as the holder of the Lease olm-operator.")
	flags.StringVar(&o.Identity, "identity", o.Identity, "Identity in the Lease; by default the name of the host or pod.")
}

// Validate reports invalid flags, and arguments, of which there must be none.
func (o *Options) Validate(arguments []string) error {
	switch {
	case len(arguments) > 0:
		return fmt.Errorf("%w: unexpected argument %q", ErrOptions, arguments[0])
	case o.Namespace == "":
		return fmt.Errorf("%w: --namespace is empty, and neither the pod nor the kubeconfig has one", ErrOptions)
	case o.Name == "" || o.Image == "":
		return fmt.Errorf("%w: --name=%s --image=%s; both are required", ErrOptions, o.Name, o.Image)
	case o.Pool != topology.WorkerPool && o.Pool != topology.ControlPlanePool:
		return fmt.Errorf("%w: --pool=%s; want %s or %s", ErrOptions, o.Pool, topology.WorkerPool, topology.ControlPlanePool)
	case o.LeaderElect && o.Identity == "":
		return fmt.Errorf("%w: --identity is empty", ErrOptions)
	}
	return nil
}
