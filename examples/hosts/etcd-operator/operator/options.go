// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// ErrOptions is returned for invalid flags.
var ErrOptions = errors.New("invalid flags")

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

// DefaultOptions returns the defaults of the flags.
func DefaultOptions() Options {
	return Options{MembersInterval: 10 * time.Second, Image: "cluster-etcd-operator"}
}

// BindFlags adds the flags, with the current options as defaults.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Run the guard controller of the stock operator instead of the vendored module. It reads no members.")
	flags.StringVar(&o.Endpoints, "etcd-endpoints", o.Endpoints, "URLs of etcd, separated by commas.")
	flags.StringVar(&o.CertFile, "etcd-cert", o.CertFile, "File of the client certificate for etcd.")
	flags.StringVar(&o.KeyFile, "etcd-key", o.KeyFile, "File of its key.")
	flags.StringVar(&o.CAFile, "etcd-ca", o.CAFile, "File of the CA of etcd.")
	flags.DurationVar(&o.MembersInterval, "members-every", o.MembersInterval, "Interval of reading the members of etcd.")
	flags.StringVar(&o.Image, "image", o.Image, "Image of the guards, with curl and sleep.")
}

// Validate reports invalid flags, and arguments, of which there must be none.
func (o *Options) Validate(arguments []string) error {
	switch {
	case len(arguments) > 0:
		return fmt.Errorf("%w: unexpected argument %q", ErrOptions, arguments[0])
	case o.Stock:
		return nil
	case o.MembersInterval <= 0:
		return fmt.Errorf("%w: --members-every=%s; want more than 0", ErrOptions, o.MembersInterval)
	case o.Image == "":
		return fmt.Errorf("%w: --image is empty", ErrOptions)
	case (o.CertFile == "") != (o.KeyFile == ""):
		return fmt.Errorf("%w: --etcd-cert and --etcd-key need each other", ErrOptions)
	}
	for _, endpoint := range o.endpoints() {
		if u, err := url.Parse(endpoint); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return fmt.Errorf("%w: --etcd-endpoints: %q; want something like https://10.0.0.1:2379", ErrOptions, endpoint)
		}
	}
	return nil
}

func (o *Options) endpoints() []string { return strings.Split(o.Endpoints, ",") }
