package manager

import (
	"runtime/metrics"
	"testing"
)

// collects is at what percent garbage is collected.
func collects() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func TestCollectLess(t *testing.T) {
	before := collects()
	for _, test := range []struct {
		environment string
		want        uint64
	}{{"", collectAt}, {"77", before}} {
		t.Setenv("GOGC", test.environment)
		restore := collectLess()
		if got := collects(); got != test.want {
			t.Errorf("with GOGC=%s garbage is collected at %d %%, want %d", test.environment, got, test.want)
		}
		restore()
		if got := collects(); got != before {
			t.Errorf("with GOGC=%s it is left at %d %%, and was %d", test.environment, got, before)
		}
	}
}
