// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// ErrNotEncryptedAtWrite means that a Secret is in etcd in plain text, or was encrypted only later.
	ErrNotEncryptedAtWrite = errors.New("a Secret was not encrypted when it was written")
	errEtcd                = errors.New("cannot read etcd")
)

// etcdFiles are files of an etcd client on the machine, as patterns that must match one file each.
type etcdFiles struct{ authority, certificate, key string }

const (
	secretName = "sno-encrypted"
	secretText = "plain-text-of-the-secret"
)

// Secrets creates a Secret, and returns all Secrets from etcd.
func (n *Node) Secrets(ctx context.Context) ([]EtcdEntry, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: secretName}, Data: map[string][]byte{"key": []byte(secretText)},
	}
	if _, err := n.kube.CoreV1().Secrets(secret.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create a Secret: %w", err)
	}
	secrets, err := n.stored(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(secrets, EtcdEntry.own) {
		return nil, fmt.Errorf("%w: Secret %s is not in it", errEtcd, secretName)
	}
	return secrets, nil
}

// EtcdEntry is a key of etcd.
type EtcdEntry struct {
	Key, Value []byte
	// Version counts the writes since it was created.
	Version int `json:",string"`
}

// own reports whether it is the Secret of this package.
func (e EtcdEntry) own() bool { return bytes.HasSuffix(e.Key, []byte("/"+secretName)) }

// inPlain returns an error for each that is not encrypted. The Secret of this package must have been written once, so
// it was never in plain text.
func inPlain(secrets []EtcdEntry) []error {
	var errs []error
	for _, s := range secrets {
		switch {
		case !bytes.HasPrefix(s.Value, []byte("k8s:enc:aescbc:")) && !bytes.HasPrefix(s.Value, []byte("k8s:enc:aesgcm:")):
			errs = append(errs, fmt.Errorf("%w: %s begins with %q", ErrNotEncryptedAtWrite, s.Key, s.Value[:min(len(s.Value), 16)]))
		case bytes.Contains(s.Value, []byte(secretText)):
			errs = append(errs, fmt.Errorf("%w: %s contains the text", ErrNotEncryptedAtWrite, s.Key))
		case s.own() && s.Version != 1:
			errs = append(errs, fmt.Errorf("%w: %s was written %d times", ErrNotEncryptedAtWrite, s.Key, s.Version))
		}
	}
	return errs
}

func (n *Node) stored(ctx context.Context) ([]EtcdEntry, error) {
	keys, err := n.etcdRange(ctx, map[string]any{"key": []byte{0}, "range_end": []byte{0}, "keys_only": true})
	if err != nil {
		return nil, err
	}
	var secrets []EtcdEntry
	for _, key := range keys {
		if !ofSecret(string(key.Key)) {
			continue
		}
		found, err := n.etcdRange(ctx, map[string]any{"key": key.Key})
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, found...)
	}
	return secrets, nil
}

// ofSecret reports whether a key is that of a Secret: /registry/secrets/default/name, or with another prefix of the API
// server.
func ofSecret(key string) bool {
	parts := strings.Split(strings.Trim(key, "/"), "/")
	return len(parts) == 4 && parts[1] == "secrets"
}

func (n *Node) etcdRange(ctx context.Context, query map[string]any) ([]EtcdEntry, error) {
	request, err := json.Marshal(query)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errEtcd, err)
	}
	// The shell resolves the patterns, and curl reports missing files.
	script := fmt.Sprintf(`query=$1; set -- %s %s %s
test $# -eq 3 || { echo "not one file each: $*" >&2; exit 1; }
exec curl --silent --show-error --fail-with-body --cacert "$1" --cert "$2" --key "$3" --data "$query" https://localhost:2379/v3/kv/range`,
		n.etcd.authority, n.etcd.certificate, n.etcd.key)
	text, err := n.Exec(ctx, "sh", "-c", script, "sh", string(request))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errEtcd, err)
	}
	var response struct{ Kvs []EtcdEntry }
	if err := json.Unmarshal([]byte(text), &response); err != nil {
		return nil, fmt.Errorf("%w: %w: %s", errEtcd, err, text)
	}
	return response.Kvs, nil
}
