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
		{nil, Options{}, nil},
		{[]string{"--create-default", "--stock"}, Options{CreateDefault: true, Stock: true}, nil},
		{[]string{"--fight", "--revert-every=5s"}, Options{Fight: true, RevertEvery: 5 * time.Second}, nil},
		{[]string{"--revert-every=5s"}, Options{RevertEvery: 5 * time.Second}, ErrOptions},
		{[]string{"--fight", "--revert-every=-5s"}, Options{Fight: true, RevertEvery: -5 * time.Second}, ErrOptions},
		{[]string{"stock"}, Options{}, ErrOptions},
	} {
		flags := flag.NewFlagSet("test", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		var got Options
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
