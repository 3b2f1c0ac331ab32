package approver_test

import (
	"testing"

	"github.com/solonode/sno/approver"
)

// benchmarkDecide decides on a request that is approved, which is the longest way through.
func benchmarkDecide(b *testing.B, from func() (*ask, *world)) {
	a, w := from()
	if v := a.decided(b, w); !v.Approve {
		b.Fatal(v)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !approver.Decide(w.Inputs).Approve {
			b.Fatal("not approved")
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	b.Run("client", func(b *testing.B) { benchmarkDecide(b, joiner) })
	b.Run("serving", func(b *testing.B) { benchmarkDecide(b, server) })
	b.Run("renewal", func(b *testing.B) { benchmarkDecide(b, renewer) })
}

func BenchmarkParse(b *testing.B) {
	a, _ := server()
	a.csr.Spec.Request = a.pem(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := approver.Parse(&a.csr); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMutated is one of the requests of TestMutatedRequests: making it, deciding on it, and asking the oracle.
func BenchmarkMutated(b *testing.B) {
	m := newMutator(b, mutationsRandomSeed, 1000)
	approved, wrong := 0, 0
	for b.Loop() {
		verdict, allowed, _ := m.once()
		if verdict.Approve {
			approved++
		}
		if verdict.Approve != allowed {
			wrong++
		}
	}
	b.ReportMetric(100*float64(approved)/float64(b.N), "approved/100")
	b.ReportMetric(float64(wrong), "wrong")
}
