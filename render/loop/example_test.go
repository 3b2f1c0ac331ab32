// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"context"
	"fmt"
	"time"

	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

// A wrong order is an error, although both loops have succeeded.
func Example() {
	reads := newLoop("reader", nil, mayGet("a"))
	writes := newLoop("writer", []string{"a"}, set("a", "1"))
	for _, steps := range [][]loop.Step{
		{loop.Once(writes), loop.Once(reads)},
		{loop.Once(reads), loop.Once(writes)},
		{loop.Cycle(3, reads, writes)},
	} {
		s, err := store.New()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(loop.Run(context.Background(), s, steps, loop.Options{Timeout: time.Minute}))
	}
	// Output:
	// <nil>
	// "reader": the order of the loops is wrong: it did not find configmaps ns/a, which "writer" has written since: run "writer" first, or put both into a cycle
	// <nil>
}
