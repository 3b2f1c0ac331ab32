// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/solonode/sno/patch/controller"
)

var defaults = Options{
	MetricsBindAddress: ":8443", MetricsSecure: true, HealthProbeBindAddress: ":8081", LeaderElect: true,
	Options: controller.Options{StatusTarget: controller.StatusOperator},
}

func TestFlagDefaults(t *testing.T) {
	flags := flag.NewFlagSet("x", flag.ContinueOnError)
	var options Options
	options.BindFlags(flags)
	if diff := cmp.Diff(defaults, options, cmpopts.IgnoreFields(Options{}, "Logging")); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	if options.Logging == nil {
		t.Error("no configuration for the logger")
	}
	flags.VisitAll(func(f *flag.Flag) {
		if f.Usage == "" {
			t.Errorf("--%s has no usage", f.Name)
		}
	})

	// A program's own values are its defaults.
	own := Options{
		Kubeconfig: "here", MetricsBindAddress: "0", HealthProbeBindAddress: ":1", LeaderElectNamespace: "there",
		Options: controller.Options{DryRun: true, ForceConflicts: true, StatusTarget: controller.StatusNone},
	}
	want := own
	want.MetricsSecure, want.LeaderElect = true, true
	own.BindFlags(flag.NewFlagSet("y", flag.ContinueOnError))
	if diff := cmp.Diff(want, own, cmpopts.IgnoreFields(Options{}, "Logging")); diff != "" {
		t.Errorf("own defaults (-want +got):\n%s", diff)
	}
}

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		args   []string
		err    error // errAny for any
		output string
		want   Options
	}{
		"all flags": {args: []string{"--kubeconfig=k", "--metrics-bind-address=0", "--metrics-secure=false", "--health-probe-bind-address=:9",
			"--leader-elect=false",
			"--leader-elect-resource-namespace=ns", "--dry-run", "--force-conflicts", "--status-target=none", "--sample=fine"},
			want: Options{Kubeconfig: "k", MetricsBindAddress: "0", HealthProbeBindAddress: ":9", LeaderElectNamespace: "ns",
				Options: controller.Options{DryRun: true, ForceConflicts: true, StatusTarget: controller.StatusNone}}},
		"nothing":                   {want: defaults},
		"help":                      {args: []string{"-h"}, err: flag.ErrHelp, output: "-leader-elect"},
		"help has flags of modules": {args: []string{"--help"}, err: flag.ErrHelp, output: "-sample"},
		"unknown":                   {args: []string{"--kubeconfg=k"}, err: errAny, output: "kubeconfg"},
		"argument":                  {args: []string{"--dry-run", "k"}, err: controller.ErrOptions, output: `"k"`},
		"status target":             {args: []string{"--status-target=both"}, err: controller.ErrOptions, output: "operator or none"},
		"module's flag":             {args: []string{"--sample=bad"}, err: errSample, output: "--sample"},
	} {
		var out bytes.Buffer
		got, err := parse("x", test.args, &out, []controller.Module{&sample{}})
		if !errors.Is(err, test.err) && (!errors.Is(test.err, errAny) || err == nil) {
			t.Errorf("%s: %v, want %v", name, err, test.err)
		}
		if !strings.Contains(out.String(), test.output) {
			t.Errorf("%s: the output lacks %q:\n%s", name, test.output, &out)
		}
		if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(Options{}, "Logging")); err == nil && diff != "" {
			t.Errorf("%s: options (-want +got):\n%s", name, diff)
		}
	}
}

var errSample = errors.New("bad value of the sample's flag")

// sample is a module with a flag.
type sample struct {
	controller.Module
	flag string
}

func (*sample) Name() string { return "sample" }

func (s *sample) BindFlags(flags *flag.FlagSet) { flags.StringVar(&s.flag, "sample", "", "A flag.") }

func (s *sample) Validate() error {
	if s.flag == "bad" {
		return fmt.Errorf("--sample: %w", errSample)
	}
	return nil
}

var errAny = errors.New("any error")

func TestRunValidates(t *testing.T) {
	if err := Run(t.Context(), nil, "x", Options{Options: controller.Options{StatusTarget: "both"}}); !errors.Is(err, controller.ErrOptions) {
		t.Errorf("%v, want %v", err, controller.ErrOptions)
	}
}
