// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/solonode/sno/hack/workspace"
)

// Cache stores the keys of mutants that were caught; all others are tried again. It is a file with one key per line, to
// which each key is appended in one write, so that several runs can share it. Unreadable files and lines that are no
// keys count as empty.
type Cache struct {
	file  string
	mutex sync.Mutex
	keys  map[string]bool
}

// CacheFile returns the path of all runs' cache: below $SNO_CACHE, or sno/ in the user's cache folder.
func CacheFile() (string, error) {
	cache, err := workspace.CacheDir()
	return filepath.Join(cache, "mutants", "caught"), err
}

// OpenCache reads the file, which need not exist.
func OpenCache(file string) *Cache {
	c := &Cache{file: file, keys: map[string]bool{}}
	data, err := os.ReadFile(file)
	if err != nil {
		return c
	}
	for line := range strings.Lines(string(data)) {
		c.keys[strings.TrimSpace(line)] = true
	}
	return c
}

func (c *Cache) has(key string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.keys[key]
}

func (c *Cache) add(key string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.keys[key] {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.file), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(c.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	// The preceding line break ends an incomplete line of a crashed run.
	if _, err := file.WriteString("\n" + key + "\n"); err != nil {
		_ = file.Close()
		return err
	}
	c.keys[key] = true
	return file.Close()
}
