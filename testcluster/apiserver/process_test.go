// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// program is a small controller that counts a reconciliation for each read of its metrics.
func program(args []string) int {
	flags := flag.NewFlagSet("program", flag.ContinueOnError)
	health, metrics := flags.String("health-probe-bind-address", "", ""), flags.String("metrics-bind-address", "", "")
	flags.Bool("metrics-secure", true, "")
	flags.Int("v", 0, "")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	var reconciles atomic.Int64
	go http.ListenAndServe(*metrics, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { //nolint:errcheck,gosec // it ends with the process
		_, _ = fmt.Fprintf(w, "controller_runtime_reconcile_total{controller=\"a\"} %d\n", reconciles.Add(1))
	}))
	go http.ListenAndServe(*health, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) //nolint:errcheck,gosec // it ends with the process
	fmt.Fprintln(os.Stdout, "hello from", flags.Args())
	<-stop
	return 0
}

func TestProcess(t *testing.T) {
	p := StartProgram(t, "a", "b")
	p.WaitForLog("hello from [a b]")
	p.Ready()
	numbers := map[int]bool{}
	for range 2 {
		p.ReconcilesAfter(2, "a", func(number int) { numbers[number] = true })
	}
	if len(numbers) != 4 {
		t.Errorf("the numbers of four changes are %v", numbers)
	}
	if ended, err := p.Ended(); ended {
		t.Errorf("it ended by itself: %v", err)
	}
	p.Stop()
	if ended, err := p.Ended(); !ended || err != nil {
		t.Errorf("after Stop: ended %v, %v", ended, err)
	}

	p = StartProgram(t)
	p.WaitForLog("hello")
	p.Kill()
	if ended, err := p.Ended(); !ended || err == nil {
		t.Errorf("after Kill: ended %v, %v", ended, err)
	}

	var out bytes.Buffer
	if err := Command(&out, "--no-such-flag").Run(); err == nil || !strings.Contains(out.String(), "no-such-flag") {
		t.Errorf("a bad flag: %v, %s", err, &out)
	}
}

func TestSum(t *testing.T) {
	const metrics = `# HELP a_total A.
a_total{x="1",y="1"} 1
a_total{x="1",y="2"} 2
a_total{x="2",y="1"} 4
a_total_other 8
b 16
c many
`
	for name, test := range map[string]struct {
		name   string
		labels []string
		want   float64
		bad    bool
	}{
		"all":        {name: "a_total", want: 7},
		"one label":  {name: "a_total", labels: []string{`x="1"`}, want: 3},
		"two labels": {name: "a_total", labels: []string{`x="1"`, `y="2"`}, want: 2},
		"no labels":  {name: "b", want: 16},
		"none":       {name: "d", want: 0},
		"no number":  {name: "c", bad: true},
	} {
		if got, err := sum(metrics, test.name, test.labels...); got != test.want || (err != nil) != test.bad {
			t.Errorf("%s: %v, %v; want %v", name, got, err, test.want)
		}
	}
}
