// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrNotReady means that /readyz of an API server is not ok.
var ErrNotReady = errors.New("the API server is not ready")

// Start is the measurement of a control plane's start.
type Start struct {
	// Took is the time from the first container to the first response of /readyz that is ok.
	Took time.Duration
	// Restarts counts containers that ended and were restarted until then.
	Restarts int
}

func (n *Node) timed(ctx context.Context, begin func(context.Context, *Node) error) (Start, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var at time.Time
	watched := make(chan error, 1)
	go func() {
		var err error
		at, err = n.ready(ctx)
		watched <- err
	}()
	if err := begin(ctx, n); err != nil {
		cancel()
		return Start{}, errors.Join(err, <-watched)
	}
	if err := <-watched; err != nil {
		return Start{}, err
	}
	text, err := n.Exec(ctx, "crictl", "pods", "--output", "json")
	if err != nil {
		return Start{}, err
	}
	first, err := firstPod(text)
	if err != nil {
		return Start{}, err
	}
	if text, err = n.Exec(ctx, "crictl", "ps", "--all", "--output", "json"); err != nil {
		return Start{}, err
	}
	restarts, err := restarts(text)
	return Start{Took: at.Sub(first), Restarts: restarts}, err
}

// ready waits until /readyz is ok, anonymously, because there are no credentials yet.
func (n *Node) ready(ctx context.Context) (time.Time, error) {
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // nothing secret is sent
		DialContext:       (&net.Dialer{Timeout: time.Second}).DialContext,
		DisableKeepAlives: true, // a connection may be to an API server that stops
	}
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	var at time.Time
	err := until(ctx, "the API server is ready", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+n.apiServer()+"/readyz", nil)
		if err != nil {
			return err //nolint:wrapcheck // until wraps it
		}
		response, err := client.Do(request)
		if err != nil {
			return err //nolint:wrapcheck // until wraps it
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(io.LimitReader(response.Body, 4096))
		at = time.Now()
		if err != nil || string(text) != "ok" {
			return fmt.Errorf("%w: %s: %q: %w", ErrNotReady, response.Status, text, err)
		}
		return nil
	})
	return at, err
}

func (n *Node) apiServer() string { return net.JoinHostPort(n.Address(), "6443") }

var errRuntime = errors.New("invalid output of the container runtime")

// firstPod returns when the first pod was created, from the output of `crictl pods`.
func firstPod(text string) (time.Time, error) {
	var list struct{ Items []struct{ CreatedAt string } }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", errRuntime, err)
	}
	var made []int64
	for _, item := range list.Items {
		nanoseconds, err := strconv.ParseInt(item.CreatedAt, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("%w: %w", errRuntime, err)
		}
		made = append(made, nanoseconds)
	}
	if len(made) == 0 {
		return time.Time{}, fmt.Errorf("%w: there is no pod", errRuntime)
	}
	return time.Unix(0, slices.Min(made)), nil
}

func restarts(text string) (int, error) {
	var list struct {
		Containers []struct {
			PodSandboxID string
			Metadata     struct {
				Name    string
				Attempt int
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return 0, fmt.Errorf("%w: %w", errRuntime, err)
	}
	// The list may also contain the predecessor of a container.
	last := map[string]int{}
	for _, container := range list.Containers {
		key := container.PodSandboxID + "/" + container.Metadata.Name
		last[key] = max(last[key], container.Metadata.Attempt)
	}
	sum := 0
	for _, attempts := range last {
		sum += attempts
	}
	return sum, nil
}

// Readiness returns the checks of /readyz. All of them must be ok.
func (n *Node) Readiness(ctx context.Context) ([]string, error) {
	text, err := n.kube.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w: %s", ErrNotReady, err, text)
	}
	return readiness(string(text))
}

func readiness(text string) ([]string, error) {
	var checks []string
	passed := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		check, ok := strings.CutPrefix(line, "[+]")
		check, ends := strings.CutSuffix(check, " ok")
		switch {
		case ok && ends && !strings.Contains(check, " "):
			checks = append(checks, check)
		case line == "readyz check passed":
			passed = true
		case line != "":
			return nil, fmt.Errorf("%w: %q", ErrNotReady, line)
		}
	}
	if !passed || len(checks) == 0 {
		return nil, fmt.Errorf("%w: %q", ErrNotReady, text)
	}
	return checks, nil
}
