// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/solonode/sno/hack/workspace"
)

type job struct {
	number int
	module workspace.Module
	entry  Entry
	key    string
	result Result
}

func (j *job) name() string { return j.module.Name() + "/" + j.entry.Name }

func (r *Runner) jobs(modules []workspace.Module) ([]*job, error) {
	var jobs []*job
	for _, m := range modules {
		entries, err := Read(r.Workspace.Path(m.Dir + "/" + FileName))
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", m.Dir, FileName, err)
		}
		for _, entry := range entries {
			j := &job{number: len(jobs), module: m, entry: entry, result: Result{Module: m.Name(), Entry: entry, Outcome: NotTried}}
			if r.Only == nil || r.Only.MatchString(j.name()) {
				jobs = append(jobs, j)
			}
		}
	}
	if len(jobs) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoneSelected, r.Only)
	}
	return jobs, nil
}

func (r *Runner) recall(ctx context.Context, jobs []*job) ([]*job, error) {
	if r.Cache != nil {
		keyer, err := newKeyer(ctx, r.Workspace)
		if err != nil {
			return nil, err
		}
		r.keyer = keyer
	}
	var left []*job
	for _, j := range jobs {
		if r.keyer != nil {
			key, err := r.keyer.key(j.module, j.entry)
			if err != nil {
				return nil, err
			}
			j.key = key
		}
		if j.key != "" && !r.Fresh && r.Cache.has(j.key) {
			j.result.Outcome = Cached
			continue
		}
		left = append(left, j)
	}
	order := rand.New(rand.NewPCG(r.Order, 0))
	order.Shuffle(len(left), func(a, b int) { left[a], left[b] = left[b], left[a] })
	return left, nil
}

// remember adds a caught mutant to the cache, unless the files have changed meanwhile.
func (r *Runner) remember(ctx context.Context, j *job) error {
	if j.key == "" || j.result.Outcome != Caught {
		return nil
	}
	keyer, err := r.keyer.again(ctx)
	if err != nil {
		return err
	}
	key, err := keyer.key(j.module, j.entry)
	if err != nil || key != j.key {
		return err
	}
	return r.Cache.add(j.key)
}

// tryAll tries the jobs until the budget is used up: go test mutants in parallel, a command alone.
func (r *Runner) tryAll(ctx context.Context, jobs []*job) {
	slots := make(chan struct{}, max(1, r.Parallel))
	var group sync.WaitGroup
	defer group.Wait()
	for _, j := range jobs {
		if len(j.entry.Command) > 0 {
			group.Wait()
		}
		slots <- struct{}{}
		if r.isOver(ctx) {
			return
		}
		group.Go(func() {
			defer func() { <-slots }()
			r.try(ctx, j)
		})
		if len(j.entry.Command) > 0 {
			group.Wait()
		}
	}
}

func (r *Runner) isOver(ctx context.Context) bool {
	return ctx.Err() != nil || r.Budget > 0 && r.now().Sub(r.started) >= r.Budget
}
