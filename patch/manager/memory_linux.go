package manager

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// mapping is a part of the address space.
type mapping struct {
	start, end uintptr
	// rights are as in "r-xp".
	rights string
	// offset is where in the file it begins.
	offset int64
	path   string
	// anonymous are bytes that are not, or not any more, what the file says.
	anonymous uint64
}

// dropCode gives back the pages of this program's code and constants. What is needed again comes back from the file; what only the start needed, which
// is most of it, does not. It returns how many bytes may have gone.
func dropCode() (uint64, error) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return 0, fmt.Errorf("which program this is: %w", err)
	}
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0, fmt.Errorf("reading the mappings of this process: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	all, err := mappings(file)
	if err != nil {
		return 0, err
	}
	own, err := os.Open("/proc/self/exe")
	if err != nil {
		return 0, fmt.Errorf("opening this program: %w", err)
	}
	defer own.Close() //nolint:errcheck // it is not even read
	var dropped uint64
	for _, m := range all {
		if !m.onlyFile(program) {
			continue
		}
		// A program is cached in huge pages where the file system does so, and each that is touched would come back whole. A kernel without huge pages
		// does not know this advice.
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_NOHUGEPAGE); errno != 0 && errno != unix.EINVAL {
			return dropped, fmt.Errorf("asking for small pages of %s: %w", program, errno)
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED); errno != 0 {
			return dropped, fmt.Errorf("giving back the pages of %s: %w", program, errno)
		}
		dropped += uint64(m.end - m.start)
		// Newer kernels map all of a large page of the cache at its first touch, whatever they were advised. What is read from the file again is cached in
		// small ones. Where another process has it mapped it stays, and nothing is lost.
		if err := unix.Fadvise(int(own.Fd()), m.offset, int64(m.end-m.start), unix.FADV_DONTNEED); err != nil { //nolint:gosec // a program is not that large
			return dropped, fmt.Errorf("giving back the cache of %s: %w", program, err)
		}
	}
	return dropped, nil
}

// onlyFile says that what is mapped is the file and nothing else, and stays so: a page that was changed, by a relocation or a debugger, would be lost.
func (m mapping) onlyFile(path string) bool {
	return m.path == path && m.anonymous == 0 && len(m.rights) == len("r-xp") && m.rights[0] == 'r' && m.rights[1] == '-' && m.rights[3] == 'p'
}

var errMappings = errors.New("the mappings of this process cannot be understood")

// mappings reads the format of /proc/PID/smaps.
func mappings(from io.Reader) ([]mapping, error) {
	var all []mapping
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		line := lines.Text()
		name, value, detail := strings.Cut(line, ":")
		if detail && !strings.Contains(name, " ") {
			if name != "Anonymous" {
				continue
			}
			var kilobytes uint64
			if _, err := fmt.Sscanf(value, "%d kB", &kilobytes); err != nil || len(all) == 0 {
				return nil, fmt.Errorf("%w: %q", errMappings, line)
			}
			all[len(all)-1].anonymous = kilobytes << 10
			continue
		}
		var m mapping
		if _, err := fmt.Sscanf(line, "%x-%x %s %x", &m.start, &m.end, &m.rights, &m.offset); err != nil || m.start >= m.end {
			return nil, fmt.Errorf("%w: %q", errMappings, line)
		}
		// Address, rights, offset, device, inode, and a path that may have spaces.
		if fields := strings.SplitN(line, " ", 6); len(fields) == 6 {
			m.path = strings.TrimSpace(fields[5])
		}
		all = append(all, m)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the mappings of this process: %w", err)
	}
	return all, nil
}
