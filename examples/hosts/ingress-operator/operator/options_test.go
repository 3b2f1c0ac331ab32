// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"flag"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		arguments []string
		want      Options
		err       error
	}{
		{nil, Options{MinReadySeconds: 30}, nil},
		{[]string{"--create-default", "--stock"}, Options{MinReadySeconds: 30, CreateDefault: true, Stock: true}, nil},
		{[]string{"--shared-host-ports"}, Options{MinReadySeconds: 30, SharedHostPorts: true}, nil},
		{[]string{"--shared-host-ports", "--stock"}, Options{MinReadySeconds: 30, SharedHostPorts: true, Stock: true}, ErrOptions},
		{[]string{"--canary", "--min-ready-seconds=0"}, Options{Canary: true}, nil},
		{[]string{"--min-ready-seconds=-1"}, Options{MinReadySeconds: -1}, ErrOptions},
		{[]string{"--revert-placement", "--revert-every=5s"}, Options{MinReadySeconds: 30, RevertPlacement: true, RevertInterval: 5 * time.Second}, nil},
		{[]string{"--revert-every=5s"}, Options{MinReadySeconds: 30, RevertInterval: 5 * time.Second}, ErrOptions},
		{[]string{"--revert-placement", "--revert-every=-5s"}, Options{MinReadySeconds: 30, RevertPlacement: true, RevertInterval: -5 * time.Second}, ErrOptions},
		{[]string{"stock"}, Options{MinReadySeconds: 30}, ErrOptions},
	} {
		flags := flag.NewFlagSet("test", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		got := DefaultOptions()
		got.BindFlags(flags)
		if err := flags.Parse(test.arguments); err != nil {
			t.Errorf("%v: %v", test.arguments, err)
		}
		if err := got.Validate(flags.Args()); !errors.Is(err, test.err) {
			t.Errorf("%v: error %v, want %v", test.arguments, err, test.err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.arguments, diff)
		}
	}
}
