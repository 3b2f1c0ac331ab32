package mutants

import (
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/solonode/sno/hack/workspace"
)

// Cache remembers which mutants were caught, by their keys, and nothing else: what survived or did not apply is tried again. It is a
// file with one key per line that is only ever appended to, in one write per key, so that several runs can share it. A file that
// cannot be read, or a line that is not a key, remembers nothing.
type Cache struct {
	file  string
	mutex sync.Mutex
	keys  map[string]bool
}

// CacheFile is where the cache of all runs lies: below $SNO_CACHE, or sno/ in the user's cache folder.
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
	// The line break in front ends a line that a crash cut short.
	if _, err := file.WriteString("\n" + key + "\n"); err != nil {
		_ = file.Close()
		return err
	}
	c.keys[key] = true
	return file.Close()
}
