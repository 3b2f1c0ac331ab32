// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Options are the operator's flags.
type Options struct {
	Stock bool
	// Endpoints are URLs of etcd, separated by commas.
	Endpoints                 string
	CertFile, KeyFile, CAFile string
	MembersInterval           time.Duration
	// Image is the image of the guards, with curl and sleep.
	Image string
}

// DefaultOptions are those without any flags.
func DefaultOptions() *Options {
	return &Options{MembersInterval: 10 * time.Second, Image: "cluster-etcd-operator"}
}

// BindFlags implements standin.Options.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Run today's guard controller instead of the vendored module. It reads no members.")
	flags.StringVar(&o.Endpoints, "etcd-endpoints", o.Endpoints, "URLs of etcd, separated by commas.")
	flags.StringVar(&o.CertFile, "etcd-cert", o.CertFile, "File of the client certificate for etcd.")
	flags.StringVar(&o.KeyFile, "etcd-key", o.KeyFile, "File of its key.")
	flags.StringVar(&o.CAFile, "etcd-ca", o.CAFile, "File of the CA of etcd.")
	flags.DurationVar(&o.MembersInterval, "members-every", o.MembersInterval, "Interval of reading the members of etcd.")
	flags.StringVar(&o.Image, "image", o.Image, "Image of the guards, with curl and sleep.")
}

// Validate implements standin.Options.
func (o *Options) Validate() error {
	if o.Stock {
		return nil
	}
	if o.MembersInterval <= 0 || o.Image == "" || (o.CertFile == "") != (o.KeyFile == "") {
		return errors.New("--members-every is more than 0, --image is not empty, and --etcd-cert and --etcd-key need each other")
	}
	for _, endpoint := range o.endpoints() {
		if u, err := url.Parse(endpoint); err != nil || u.Host == "" {
			return fmt.Errorf("--etcd-endpoints: %q; want something like https://10.0.0.1:2379", endpoint) //nolint:err113 // for a person
		}
	}
	return nil
}

func (o *Options) endpoints() []string { return strings.Split(o.Endpoints, ",") }
