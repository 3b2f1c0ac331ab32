// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

const dialTimeout = 10 * time.Second

// Save saves the data of the etcd at the endpoint, a URL, to a file, which is complete and verified, or absent.
func Save(ctx context.Context, endpoint string, client *tls.Config, path string) error {
	part := path + ".unverified"
	cfg := clientv3.Config{Endpoints: []string{endpoint}, TLS: client, DialTimeout: dialTimeout, Logger: zap.NewNop(), Context: ctx}
	// The client writes part.part first, and renames it.
	defer func() { _, _ = os.Remove(part), os.Remove(part+".part") }()
	if _, err := snapshot.NewV3(zap.NewNop()).Save(ctx, cfg, part); err != nil {
		return fmt.Errorf("save the snapshot of etcd at %s: %w", endpoint, err)
	}
	if _, err := Verify(part); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("save the snapshot: %w", err)
	}
	return syncPath(filepath.Dir(path))
}

// DeletePrefix deletes the keys with a prefix.
func DeletePrefix(ctx context.Context, endpoint string, client *tls.Config, prefix string) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, TLS: client, DialTimeout: dialTimeout, Logger: zap.NewNop(), Context: ctx})
	if err == nil {
		_, err = c.Delete(ctx, prefix, clientv3.WithPrefix())
		_ = c.Close()
	}
	if err != nil {
		return fmt.Errorf("delete %s* in etcd at %s: %w", prefix, endpoint, err)
	}
	return nil
}

// syncPath syncs a file or folder, so that it survives a power cut.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}
