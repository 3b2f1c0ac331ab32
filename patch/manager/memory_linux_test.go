package manager

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

const twoMappings = `00400000-013ab000 r--p 0001f000 fe:00 10002723                           /opt/the program
Size:              16044 kB
Rss:                2604 kB
Anonymous:             0 kB
VmFlags: rd mr mw me
368da7400000-368da9400000 rw-p 00000000 00:00 0 
Rss:               22580 kB
Anonymous:         22580 kB
`

func TestMappings(t *testing.T) {
	got, err := mappings(strings.NewReader(twoMappings))
	if err != nil {
		t.Fatal(err)
	}
	want := []mapping{
		{start: 0x400000, end: 0x13ab000, rights: "r--p", offset: 0x1f000, path: "/opt/the program"},
		{start: 0x368da7400000, end: 0x368da9400000, rights: "rw-p", anonymous: 22580 << 10},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mapping{})); diff != "" {
		t.Errorf("mappings (-want +got):\n%s", diff)
	}
	for name, text := range map[string]string{
		"no mapping":         "Anonymous: 1 kB\n",
		"no number":          twoMappings + "Anonymous: many\n",
		"no address":         "nothing is here\n",
		"ends before it has": "2000-1000 r--p 00000000 00:00 0\n",
	} {
		if _, err := mappings(strings.NewReader(text)); !errors.Is(err, errMappings) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOnlyFile(t *testing.T) {
	for name, test := range map[string]struct {
		mapping mapping
		want    bool
	}{
		"code":                  {mapping{rights: "r-xp", path: "/p"}, true},
		"constants":             {mapping{rights: "r--p", path: "/p"}, true},
		"variables":             {mapping{rights: "rw-p", path: "/p"}, false},
		"relocated constants":   {mapping{rights: "r--p", path: "/p", anonymous: 4096}, false},
		"shared with others":    {mapping{rights: "r--s", path: "/p"}, false},
		"cannot be read":        {mapping{rights: "---p", path: "/p"}, false},
		"a library":             {mapping{rights: "r-xp", path: "/lib"}, false},
		"memory":                {mapping{rights: "r--p"}, false},
		"not as the kernel has": {mapping{rights: "r", path: "/p"}, false},
	} {
		if got := test.mapping.onlyFile("/p"); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The test goes on afterwards, so nothing that it needs was lost.
func TestDropCode(t *testing.T) {
	resident := func() int {
		t.Helper()
		self, err := procfs.Self()
		if err != nil {
			t.Fatal(err)
		}
		status, err := self.NewStatus()
		if err != nil {
			t.Fatal(err)
		}
		return int(status.RssFile)
	}
	before := resident()
	dropped, err := dropCode()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if dropped == 0 || int64(dropped) > info.Size() {
		t.Errorf("%d bytes were dropped of a program of %d", dropped, info.Size())
	}
	if after := resident(); after >= before {
		t.Errorf("%d bytes of files are resident, and %d were before", after, before)
	}
}

// cached is how much of a file the kernel has in memory, in pages.
func cached(t *testing.T, file *os.File) (pages int) {
	t.Helper()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	mapped, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mapped) }()
	are := make([]byte, (len(mapped)+os.Getpagesize()-1)/os.Getpagesize())
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(len(mapped)), uintptr(unsafe.Pointer(&are[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, is := range are {
		pages += int(is & 1)
	}
	return pages
}

// What is cached in large pages would be mapped in large pages again.
func TestDropCodeFromTheCache(t *testing.T) {
	program, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Close() }()
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(program.Fd()), &system); err != nil || system.Type == unix.TMPFS_MAGIC {
		t.Skipf("the program is in a file system that is memory itself, or of no known kind: %v", err)
	}
	// It may have been built a moment ago, and what is not on the disk yet is not given back.
	if err := program.Sync(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, program); err != nil {
		t.Fatal(err)
	}
	before := cached(t, program)
	if _, err := dropCode(); err != nil {
		t.Fatal(err)
	}
	// The rest is what the program runs on at this moment, and what is in the file and never mapped.
	if after := cached(t, program); after >= before*95/100 {
		t.Errorf("%d pages of the program are cached, and %d were before", after, before)
	}
}

func TestGiveBack(t *testing.T) {
	for name, lives := range map[string]time.Duration{"that goes on": started + time.Second, "that ends before": started - time.Second} {
		t.Run("a process "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said []string
				log := funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{Verbosity: 1})
				ctx, cancel := context.WithTimeout(logr.NewContext(t.Context(), log), lives)
				defer cancel()
				giveBack(ctx)
				if got, want := strings.Contains(strings.Join(said, "\n"), "Memory of the start given back"), lives > started; got != want {
					t.Errorf("it says %q", said)
				}
			})
		})
	}
}
