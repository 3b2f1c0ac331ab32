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

// ErrNotReady is returned for an API server that does not answer that it is ready.
var ErrNotReady = errors.New("the API server is not ready")

// Start is how a control plane came up.
type Start struct {
	// Took is the time from the first container to the first answer of /readyz that is ok.
	Took time.Duration
	// Restarts counts containers that ended and were started again until then.
	Restarts int
}

// timed begins, and returns when the API server is ready.
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

// ready returns when /readyz said ok for the first time. It asks as anybody, because nobody has credentials yet.
func (n *Node) ready(ctx context.Context) (time.Time, error) {
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // nothing secret is said
		DialContext:       (&net.Dialer{Timeout: time.Second}).DialContext,
		DisableKeepAlives: true, // a connection may be to an API server that ends
	}
	asker := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	var at time.Time
	err := until(ctx, "the API server is ready", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+n.apiServer()+"/readyz", nil)
		if err != nil {
			return err //nolint:wrapcheck // until wraps it
		}
		answer, err := asker.Do(request)
		if err != nil {
			return err //nolint:wrapcheck // until wraps it
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(io.LimitReader(answer.Body, 4096))
		at = time.Now()
		if err != nil || string(text) != "ok" {
			return fmt.Errorf("%w: %s: %q: %w", ErrNotReady, answer.Status, text, err)
		}
		return nil
	})
	return at, err
}

func (n *Node) apiServer() string { return net.JoinHostPort(n.Address(), "6443") }

// errRuntime is returned for an answer of the container runtime that cannot be read.
var errRuntime = errors.New("cannot read what the container runtime says")

// firstPod returns when the container of the first pod was made, from what `crictl pods` prints.
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

// restarts counts them, from what `crictl ps --all` prints.
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
	// One that has ended may be in the list beside the one that took its place.
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

// readiness reads what /readyz?verbose says.
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
		return nil, fmt.Errorf("%w: it says %q", ErrNotReady, text)
	}
	return checks, nil
}
