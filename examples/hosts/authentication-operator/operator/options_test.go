// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"flag"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestOptions(t *testing.T) {
	with := func(change func(*Options)) Options {
		o := Options{WellKnownPath: "/.well-known/oauth-authorization-server", WellKnownInterval: 10 * time.Second, WellKnownServerName: "kubernetes.default.svc"}
		if change != nil {
			change(&o)
		}
		return o
	}
	for _, test := range []struct {
		arguments []string
		want      Options
		err       error
	}{
		{nil, with(nil), nil},
		{[]string{"--stock"}, with(func(o *Options) { o.Stock = true }), nil},
		{[]string{"--well-known-path=/readyz", "--well-known-every=1s", "--well-known-server-name=localhost"},
			with(func(o *Options) {
				o.WellKnownPath, o.WellKnownInterval, o.WellKnownServerName = "/readyz", time.Second, "localhost"
			}), nil},
		{[]string{"--connect-to=192.0.2.1:6443=127.0.0.1:1", "--connect-to", "[2001:db8::1]:6443=[::1]:2"},
			with(func(o *Options) {
				o.ConnectTo = Addresses{"192.0.2.1:6443": "127.0.0.1:1", "[2001:db8::1]:6443": "[::1]:2"}
			}), nil},
		{[]string{"--well-known-path=readyz"}, with(func(o *Options) { o.WellKnownPath = "readyz" }), ErrOptions},
		{[]string{"--well-known-every=0s"}, with(func(o *Options) { o.WellKnownInterval = 0 }), ErrOptions},
		{[]string{"stock"}, with(nil), ErrOptions},
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
		if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(Options{})); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.arguments, diff)
		}
	}
	for _, pair := range []string{"", "192.0.2.1:6443", "192.0.2.1=127.0.0.1:1", "192.0.2.1:6443=127.0.0.1"} {
		var addresses Addresses
		if err := addresses.Set(pair); !errors.Is(err, ErrOptions) {
			t.Errorf("%q: error %v", pair, err)
		}
	}
	if got, want := (&Addresses{"b:1": "c:2", "a:1": "d:2"}).String(), "a:1=d:2,b:1=c:2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
