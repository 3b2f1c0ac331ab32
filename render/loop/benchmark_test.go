// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

// BenchmarkRun runs 30 loops that write ten ConfigMaps each, about as much as the whole control plane.
func BenchmarkRun(b *testing.B) {
	const loops, each = 30, 10
	for b.Loop() {
		s, err := store.New()
		if err != nil {
			b.Fatal(err)
		}
		steps := make([]loop.Step, 0, loops)
		for l := range loops {
			steps = append(steps, loop.Once(newLoop(fmt.Sprintf("loop %d", l), writes("*"), func(ctx context.Context, client kubernetes.Interface) error {
				for i := range each {
					if err := set(fmt.Sprintf("%d-%d", l, i), "1")(ctx, client); err != nil {
						return err
					}
				}
				return nil
			})))
		}
		if err := loop.Run(b.Context(), s, steps, loop.Options{Timeout: time.Minute}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)/(loops*each), "ms/write")
}
