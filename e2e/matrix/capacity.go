// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
)

// MemoryPerCluster is the memory in bytes of one cluster with everything on it. The largest needs a bit less.
const MemoryPerCluster = 750 << 20

// Capacity returns how many clusters this machine has room for: two for each processor, since they mostly wait, as far
// as free memory permits.
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

func available(meminfo io.Reader) (int64, bool) {
	for lines := bufio.NewScanner(meminfo); lines.Scan(); {
		var kibibytes int64
		if n, _ := fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &kibibytes); n == 1 {
			return kibibytes << 10, true
		}
	}
	return 0, false
}
