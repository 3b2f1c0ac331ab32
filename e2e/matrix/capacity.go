package matrix

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
)

// MemoryPerCluster is how much memory one cluster takes with everything on it, in bytes. The largest takes a bit less.
const MemoryPerCluster = 750 << 20

// Capacity is how many clusters this machine has room for: two for each processor, since they wait a lot, as far as the memory goes
// that is free now.
func Capacity() int {
	n := 2 * runtime.NumCPU()
	if file, err := os.Open("/proc/meminfo"); err == nil {
		defer file.Close() //nolint:errcheck // it was only read
		if free, ok := available(file); ok {
			n = min(n, int(free/MemoryPerCluster)) //nolint:gosec // a number of clusters
		}
	}
	return max(n, 1)
}

// available is the memory that programs can have without swapping, in bytes, as Linux says it.
func available(meminfo io.Reader) (int64, bool) {
	for lines := bufio.NewScanner(meminfo); lines.Scan(); {
		var kibibytes int64
		if n, _ := fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &kibibytes); n == 1 {
			return kibibytes << 10, true
		}
	}
	return 0, false
}
