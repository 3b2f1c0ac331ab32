package machineconfig

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseRequest(t *testing.T) {
	for value, want := range map[string]Request{
		"drain-rendered-worker-0a1b":    {VerbDrain, "rendered-worker-0a1b"},
		"uncordon-rendered-master-0a1b": {VerbUncordon, "rendered-master-0a1b"},
		"drain-uncordon":                {VerbDrain, "uncordon"},
		"drain-x.y":                     {VerbDrain, "x.y"},
	} {
		got, err := ParseRequest(value)
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", value, got, err, want)
		}
		if got.String() != value {
			t.Errorf("%q is written as %q", value, got)
		}
	}
	for _, value := range []string{
		"", " ", "-", "drain", "uncordon", "drain-", "-config", "Drain-config", "drain config", " drain-config", "drain-config ",
		"drain-con fig", "drain-config\n", "drain--config", "drained-config", "undrain-config", "reboot-config", "cordon-config", "true",
		"drain-Config", "drain-конфиг", "drain-\x00", "\xff\xfe", `{"verb":"drain"}`, "uncordon_config",
		"drain-" + strings.Repeat("x", 254), strings.Repeat("drain-", 50000),
	} {
		got, err := ParseRequest(value)
		if !errors.Is(err, ErrRequest) || got != (Request{}) {
			t.Errorf("%.80q is %+v, %v; want ErrRequest", value, got, err)
		}
		if err != nil && len(err.Error()) > 600 {
			t.Errorf("%.80q: the error has %d bytes", value, len(err.Error()))
		}
	}
}

func TestAsked(t *testing.T) {
	drain := &Request{VerbDrain, "a"}
	for name, test := range map[string]struct {
		desired, lastApplied string
		want                 *Request
		fails                bool
	}{
		"nothing":                        {"", "", nil, false},
		"the first request":              {"drain-a", "", drain, false},
		"done":                           {"drain-a", "drain-a", nil, false},
		"the next verb":                  {"uncordon-a", "drain-a", &Request{VerbUncordon, "a"}, false},
		"the next config":                {"drain-a", "drain-b", drain, false},
		"the answer alone":               {"", "drain-a", nil, false},
		"an answer that nobody can mean": {"drain-a", "garbage", drain, false},
		"garbage":                        {"garbage", "drain-a", nil, true},
		"garbage that was answered":      {"garbage", "garbage", nil, false},
	} {
		annotations := map[string]string{"other": "value"}
		if test.desired != "" {
			annotations[DesiredDrainAnnotation] = test.desired
		}
		if test.lastApplied != "" {
			annotations[LastAppliedDrainAnnotation] = test.lastApplied
		}
		got, err := Asked(annotations)
		if (err != nil) != test.fails || (err != nil && !errors.Is(err, ErrRequest)) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got, err := Asked(map[string]string{DesiredDrainAnnotation: ""}); got != nil || err != nil {
		t.Errorf("an empty request: %v, %v", got, err)
	}
	if got, err := Asked(nil); got != nil || err != nil {
		t.Errorf("no annotations: %v, %v", got, err)
	}
}

func FuzzParseRequest(f *testing.F) {
	for _, value := range []string{"drain-a", "uncordon-a.b", "drain-", "-", "drain-\xff"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		request, err := ParseRequest(value)
		if err != nil {
			return
		}
		if request.String() != value {
			t.Errorf("%q is written as %q", value, request)
		}
	})
}

// A node that was told that it may leave is away until it was told that it takes pods again, cordoned or not.
func TestHasLeave(t *testing.T) {
	for name, test := range map[string]struct {
		desired, lastApplied string
		want                 bool
	}{
		"nothing":                      {"", "", false},
		"asks":                         {"drain-a", "", false},
		"may leave":                    {"drain-a", "drain-a", true},
		"wants to be back":             {"uncordon-a", "drain-a", true},
		"is back":                      {"uncordon-a", "uncordon-a", false},
		"asks again":                   {"drain-b", "uncordon-a", false},
		"asks anew":                    {"drain-b", "drain-a", false},
		"garbage":                      {"drain-b", "nonsense", false},
		"garbage in its place":         {"nonsense", "drain-a", true},
		"takes no part in it any more": {"", "drain-a", false},
	} {
		annotations := map[string]string{}
		if test.desired != "" {
			annotations[DesiredDrainAnnotation] = test.desired
		}
		if test.lastApplied != "" {
			annotations[LastAppliedDrainAnnotation] = test.lastApplied
		}
		if got := HasLeave(annotations); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
