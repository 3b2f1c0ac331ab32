// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	requestTimeout = 30 * time.Second
	// A connection that answers no ping is closed, so that a watch does not wait on it for ever.
	pingAfter, pingTimeout = 30 * time.Second, 15 * time.Second
	// maxBody limits an answer that is no watch.
	maxBody = 4 << 20
)

// Object identifies one object.
type Object struct {
	Group, Version, Resource string
	Namespace, Name          string
}

func (o Object) collection() string {
	path := "/apis/" + o.Group + "/" + o.Version
	if o.Namespace != "" {
		path += "/namespaces/" + url.PathEscape(o.Namespace)
	}
	return path + "/" + o.Resource
}

func (o Object) path() string { return o.collection() + "/" + url.PathEscape(o.Name) }

// String returns "deployments.apps example/server", for messages.
func (o Object) String() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return o.Resource + "." + o.Group + " " + name
}

// Client is a client for single objects. Errors of the API server are those of apimachinery's package errors.
type Client struct {
	server, agent string
	http          *http.Client
	token         func() (string, error)
}

// New returns a client with a name for the audit log.
func New(config Config, agent string) (*Client, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(config.CA) > 0 {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(config.CA) {
			return nil, fmt.Errorf("%w: the authority has no certificate in PEM form", ErrConfig)
		}
	}
	if len(config.Certificate) > 0 {
		pair, err := tls.X509KeyPair(config.Certificate, config.Key)
		if err != nil {
			return nil, fmt.Errorf("%w: client certificate: %w", ErrConfig, err)
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: settings, ForceAttemptHTTP2: true, TLSHandshakeTimeout: requestTimeout,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	token := func() (string, error) { return config.Token, nil }
	if config.TokenFile != "" {
		token = func() (string, error) {
			text, err := os.ReadFile(config.TokenFile)
			return strings.TrimSpace(string(text)), err
		}
	}
	return &Client{server: strings.TrimSuffix(config.Server, "/"), agent: agent, http: &http.Client{Transport: transport}, token: token}, nil
}

// Get reads an object.
func (c *Client) Get(ctx context.Context, o Object, into any) error {
	return c.exchange(ctx, http.MethodGet, o, o.path(), nil, "", nil, into)
}

// Create creates an object.
func (c *Client) Create(ctx context.Context, o Object, body, into any) error {
	return c.exchange(ctx, http.MethodPost, o, o.collection(), nil, "application/json", body, into)
}

// Update replaces an object; its resourceVersion must be the current one.
func (c *Client) Update(ctx context.Context, o Object, body, into any) error {
	return c.exchange(ctx, http.MethodPut, o, o.path(), nil, "application/json", body, into)
}

// Apply applies fields as the owner, by server-side apply, and takes them from other owners.
func (c *Client) Apply(ctx context.Context, o Object, owner string, fields map[string]any) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	query := url.Values{"fieldManager": {owner}, "force": {"true"}}
	return live, c.exchange(ctx, http.MethodPatch, o, o.path(), query, string(types.ApplyPatchType), fields, live)
}

// Delete deletes this object, but not a later one with its name. It is no error if there is none.
func (c *Client) Delete(ctx context.Context, o Object, uid types.UID) error {
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background,
	}
	err := c.exchange(ctx, http.MethodDelete, o, o.path(), nil, "application/json", options, nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (c *Client) exchange(ctx context.Context, method string, o Object, path string, query url.Values, kind string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	response, err := c.send(ctx, method, o, path, query, kind, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s %s: reading the answer: %w", method, o, err)
	}
	return nil
}

// send returns a successful response, whose body the caller closes.
func (c *Client) send(ctx context.Context, method string, o Object, path string, query url.Values, kind string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, o, err)
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.server+path+"?"+query.Encode(), content)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, o, err)
	}
	token, err := c.token()
	if err != nil {
		return nil, fmt.Errorf("%s %s: reading the token: %w", method, o, err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", c.agent)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, o, err)
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxBody)) // the code is enough
	return nil, fmt.Errorf("%s %s: %w", method, o, statusError(response.StatusCode, method, o, text))
}

func statusError(code int, method string, o Object, text []byte) error {
	var status metav1.Status
	if err := json.Unmarshal(text, &status); err == nil && status.Kind == "Status" && status.Reason != "" {
		return &apierrors.StatusError{ErrStatus: status}
	}
	resource := schema.GroupResource{Group: o.Group, Resource: o.Resource}
	return apierrors.NewGenericServerResponse(code, strings.ToLower(method), resource, o.Name, string(text), 0, true)
}
