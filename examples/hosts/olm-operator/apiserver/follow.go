// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// State is what the API server has reported last about an object.
type State struct {
	// Object is nil if it does not exist.
	Object *unstructured.Unstructured
	// NotServed means that its kind does not exist.
	NotServed bool
}

const (
	// A watch ends after a random time from watchTime to twice that, so that watches do not end together.
	watchTime = 5 * time.Minute
	// shortWatch is the length of a watch that counts as a failure.
	shortWatch = time.Second
)

var (
	errEvent = errors.New("the watch reports an error")
	errShort = errors.New("the watch ended at once")
)

// retry is the back-off of Follow.
var retry = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 6, Cap: 30 * time.Second}

// Follow calls notify with every State until the context ends. It lists once and then watches: after a broken watch
// from where it was, and from a new list if the API server no longer has that version. While the API server cannot be
// reached, the last State holds.
func (c *Client) Follow(ctx context.Context, o Object, notify func(State)) {
	c.follow(ctx, o, retry, notify)
}

func (c *Client) follow(ctx context.Context, o Object, backoff wait.Backoff, notify func(State)) {
	version, failures := "", backoff
	logged := ""
	for ctx.Err() == nil {
		var err error
		if version == "" {
			version, err = c.list(ctx, o, notify)
		} else {
			began := time.Now()
			version, err = c.watch(ctx, o, version, notify)
			if err == nil && time.Since(began) < shortWatch {
				err = errShort
			}
		}
		if err == nil {
			failures, logged = backoff, ""
			continue
		}
		if apierrors.IsNotFound(err) {
			version = ""
			notify(State{NotServed: true})
		}
		if text := err.Error(); text != logged && ctx.Err() == nil && !errors.Is(err, errShort) {
			logged = text
			klog.FromContext(ctx).Info("Following an object failed, retrying", "object", o.String(), "err", text)
		}
		Wait(ctx, failures.Step())
	}
}

// Wait returns after a time, or when the context ends.
func Wait(ctx context.Context, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (o Object) selector() url.Values {
	return url.Values{"fieldSelector": {"metadata.name=" + o.Name}}
}

// list returns the version from which to watch.
func (c *Client) list(ctx context.Context, o Object, notify func(State)) (string, error) {
	var list struct {
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := c.exchange(ctx, http.MethodGet, o, o.collection(), o.selector(), "", nil, &list); err != nil {
		return "", err
	}
	state := State{}
	for _, item := range list.Items {
		object, err := decode(item)
		if err != nil {
			return "", fmt.Errorf("listing %s: %w", o, err)
		}
		if object.GetName() == o.Name {
			state.Object = object
		}
	}
	notify(state)
	return list.Metadata.ResourceVersion, nil
}

// decode accepts items of a list, which have no kind.
func decode(text []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	return object, utiljson.Unmarshal(text, &object.Object)
}

// watch returns the version from which to watch again; it is empty if a list is needed.
func (c *Client) watch(ctx context.Context, o Object, version string, notify func(State)) (string, error) {
	query := o.selector()
	query.Set("watch", "true")
	query.Set("allowWatchBookmarks", "true")
	query.Set("resourceVersion", version)
	query.Set("timeoutSeconds", strconv.Itoa(int((watchTime + rand.N(watchTime)).Seconds())))
	response, err := c.send(ctx, http.MethodGet, o, o.collection(), query, "", nil)
	if expired(err) {
		return "", nil
	}
	if err != nil {
		return version, err
	}
	defer func() { _ = response.Body.Close() }()
	for decoder := json.NewDecoder(response.Body); ; {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&event); errors.Is(err, io.EOF) {
			return version, nil
		} else if err != nil {
			return version, fmt.Errorf("watching %s: %w", o, err)
		}
		if event.Type == "ERROR" {
			var status metav1.Status
			if err := json.Unmarshal(event.Object, &status); err != nil {
				return version, fmt.Errorf("watching %s: %w", o, err)
			}
			if expired(&apierrors.StatusError{ErrStatus: status}) {
				return "", nil
			}
			return version, fmt.Errorf("watching %s: %w: %s", o, errEvent, status.Message)
		}
		object, err := decode(event.Object)
		if err != nil {
			return version, fmt.Errorf("watching %s: %w", o, err)
		}
		version = object.GetResourceVersion()
		switch event.Type {
		case "ADDED", "MODIFIED":
			notify(State{Object: object})
		case "DELETED":
			notify(State{})
		}
	}
}

func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}
