package manager

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestFlagDefaults(t *testing.T) {
	flags := flag.NewFlagSet("x", flag.ContinueOnError)
	var options Options
	options.BindFlags(flags)
	want := Options{
		MetricsBindAddress: ":8443", MetricsSecure: true, HealthProbeBindAddress: ":8081", LeaderElect: true, StatusTarget: StatusOperator,
	}
	if diff := cmp.Diff(want, options, cmpopts.IgnoreFields(Options{}, "Logging")); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	if options.Logging == nil {
		t.Error("no configuration for the logger")
	}
	flags.VisitAll(func(f *flag.Flag) {
		if f.Usage == "" {
			t.Errorf("--%s does not say what it is for", f.Name)
		}
	})

	// A program's own values are its defaults.
	own := Options{Kubeconfig: "here", MetricsBindAddress: "0", HealthProbeBindAddress: ":1", LeaderElectNamespace: "there", DryRun: true, ForceConflicts: true, StatusTarget: StatusNone}
	want = own
	want.MetricsSecure, want.LeaderElect = true, true
	own.BindFlags(flag.NewFlagSet("y", flag.ContinueOnError))
	if diff := cmp.Diff(want, own, cmpopts.IgnoreFields(Options{}, "Logging")); diff != "" {
		t.Errorf("own defaults (-want +got):\n%s", diff)
	}
}

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		err  error
		says string
		want func(*Options)
	}{
		"all flags": {args: []string{"--kubeconfig=k", "--metrics-bind-address=0", "--metrics-secure=false", "--health-probe-bind-address=:9", "--leader-elect=false",
			"--leader-elect-resource-namespace=ns", "--dry-run", "--force-conflicts", "--status-target=none", "--sample=fine"},
			want: func(o *Options) {
				*o = Options{Kubeconfig: "k", MetricsBindAddress: "0", HealthProbeBindAddress: ":9", LeaderElectNamespace: "ns", DryRun: true, ForceConflicts: true, StatusTarget: StatusNone}
			}},
		"nothing":              {want: func(*Options) {}},
		"help":                 {args: []string{"-h"}, says: "-leader-elect"},
		"help names our flags": {args: []string{"--help"}, says: "-sample"},
		"unknown":              {args: []string{"--kubeconfg=k"}, code: 2, says: "kubeconfg"},
		"argument":             {args: []string{"--dry-run", "k"}, code: 2, err: ErrOptions, says: `"k"`},
		"status target":        {args: []string{"--status-target=both"}, code: 2, err: ErrOptions, says: "operator or none"},
		"module's flag":        {args: []string{"--sample=bad"}, code: 2, err: errSample, says: "--sample"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			var options Options
			code, err := parse("x", test.args, &out, &options, []Module{&sample{}})
			if code != test.code || (err != nil) != (test.code != 0) || (test.err != nil && !errors.Is(err, test.err)) {
				t.Errorf("code %d, %v; want %d, %v", code, err, test.code, test.err)
			}
			if !strings.Contains(out.String(), test.says) {
				t.Errorf("the output does not say %q:\n%s", test.says, &out)
			}
			want := Options{}
			if test.want != nil {
				want = Options{MetricsBindAddress: ":8443", MetricsSecure: true, HealthProbeBindAddress: ":8081", LeaderElect: true, StatusTarget: StatusOperator}
				test.want(&want)
			}
			if diff := cmp.Diff(want, options, cmpopts.IgnoreFields(Options{}, "Logging")); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
			if (options.Logging != nil) != (test.want != nil) {
				t.Error("only a program that is to run gets a logger")
			}
		})
	}
}

// Run checks what it is given also when no flags were read.
func TestRunValidates(t *testing.T) {
	if err := Run(t.Context(), nil, "x", Options{StatusTarget: "both"}); !errors.Is(err, ErrOptions) {
		t.Errorf("%v, want %v", err, ErrOptions)
	}
}
