// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// ErrNotDownloaded is returned in mode download for programs that cannot be downloaded.
var ErrNotDownloaded = errors.New("not downloaded")

// failure is why one program was not downloaded from one publisher.
type failure struct {
	program string
	err     error
}

// answer is a document, or why there is none.
type answer struct {
	content []byte
	err     error
}

// download puts the recipe's programs into a folder as far as they can be downloaded, and returns their origins and the
// failures. All servers are asked at once, so that a machine without a network waits for the slowest of them only.
func download(ctx context.Context, r recipe, s settings, folder string, progress io.Writer) (map[string]programOrigin, []failure, error) {
	f := newFetcher(s, folder, &lines{out: progress})
	defer f.client.CloseIdleConnections()
	offers := map[string][]publisher{}
	for _, name := range r.names() {
		offers[name] = publishers(name, r.versions, s)
	}
	// No document is needed any more when all programs are there or have failed.
	reading, stop := context.WithCancel(ctx)
	defer stop()
	documents := f.documents(reading, offers)
	var mu sync.Mutex
	origins, failures := map[string]programOrigin{}, []failure{}
	var group sync.WaitGroup
	for name, all := range offers {
		group.Go(func() {
			origin, failed := f.first(ctx, name, all, documents)
			mu.Lock()
			defer mu.Unlock()
			failures = append(failures, failed...)
			if origin.Host != "" {
				origins[name] = origin
			}
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("download Kubernetes %s: %w", r.version, err)
	}
	failures = slices.DeleteFunc(failures, func(one failure) bool { return origins[one.program].Host != "" })
	slices.SortFunc(failures, func(a, b failure) int { return strings.Compare(a.program, b.program) })
	return origins, failures, f.removeParts()
}

// documents begins to read all documents, and returns functions that wait for one.
func (f *fetcher) documents(ctx context.Context, offers map[string][]publisher) map[string]func() answer {
	all := map[string]func() answer{"": func() answer { return answer{} }}
	for _, each := range offers {
		for _, p := range each {
			if all[p.document] == nil {
				read := sync.OnceValue(func() answer {
					content, err := f.document(ctx, p.document)
					return answer{content, err}
				})
				all[p.document] = read
				go read()
			}
		}
	}
	return all
}

// first downloads a program from the first publisher that has it. Without one the origin is empty.
func (f *fetcher) first(ctx context.Context, name string, all []publisher, documents map[string]func() answer) (programOrigin, []failure) {
	var failures []failure
	for _, p := range all {
		r, err := p.choose(documents[p.document]())
		var sum string
		if err == nil {
			sum, err = f.program(ctx, name, r)
		}
		if err == nil {
			for _, earlier := range failures {
				if !errors.Is(earlier.err, errNotPublished) {
					fmt.Fprintf(f.progress, "  %s: not from %v\n", name, earlier.err)
				}
			}
			return programOrigin{Host: hostOf(r.address), SHA256: sum}, nil
		}
		failures = append(failures, failure{name, err})
	}
	return programOrigin{}, failures
}

// choose returns the release that a document names.
func (p publisher) choose(a answer) (release, error) {
	if a.err != nil {
		return release{}, a.err
	}
	r, err := p.find(a.content)
	if err != nil && p.document != "" {
		err = &fetchError{hostOf(p.document), err}
	}
	return r, err
}

// reasons returns the different failures as a part of one line.
func reasons(failures []failure) string {
	var all []string
	for _, one := range failures {
		if text := one.err.Error(); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		return "no release is published"
	}
	return strings.Join(all, "; ")
}
