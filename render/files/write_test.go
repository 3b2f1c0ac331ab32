// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// childFolder is the folder into which a child process of this test writes files repeatedly.
const childFolder = "FILES_TEST_WRITE_TO"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		for {
			if err := Replace(dir, many()); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	os.Exit(m.Run())
}

func many() []File {
	all := make([]File, 300)
	for i := range all {
		all[i] = File{Path: fmt.Sprintf("folder/%d", i), Mode: 0o600, Content: bytes.Repeat([]byte("x"), 1000)}
	}
	return all
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil || relative == "." {
			return err
		}
		found[relative] = info.Mode().String()
		if !entry.IsDir() {
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			found[relative] += " " + string(content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var (
	pair     = []File{{"etc/b.sh", 0o755, []byte("b")}, {"a", 0o600, []byte("a")}}
	wantPair = map[string]string{"a": "-rw------- a", "etc": "drwx------", "etc/b.sh": "-rwxr-xr-x b"}
)

// R-REN-8.
func TestWrite(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before []File // nil: no folder
		write  func(string, []File) error
		want   error
	}{
		"new":                   {write: Write},
		"empty":                 {before: []File{}, write: Write},
		"not empty":             {before: []File{{"old", 0o600, nil}}, write: Write, want: ErrNotEmpty},
		"replace":               {before: []File{{"old", 0o600, nil}, {"etc/old", 0o600, nil}}, write: Replace},
		"replace where is none": {write: Replace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			dir := filepath.Join(parent, "some", "out[put]")
			if test.before != nil {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range test.before {
				name := filepath.Join(dir, file.Path)
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, file.Content, file.Mode)); err != nil {
					t.Fatal(err)
				}
			}
			want := map[string]string{}
			if test.want != nil {
				want = tree(t, parent)
			} else {
				want["some"], want["some/out[put]"] = "drwxr-xr-x", "drwx------"
				for name, mode := range wantPair {
					want["some/out[put]/"+name] = mode
				}
			}
			if err := test.write(dir, pair); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if diff := cmp.Diff(want, tree(t, parent)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]error{
		"../a": ErrInvalidPath, "/a": ErrInvalidPath, "a/../b": ErrInvalidPath, ".": ErrInvalidPath, "": ErrInvalidPath, "a": ErrDuplicate, "a/b": ErrDuplicate, "etc": ErrDuplicate,
	} {
		parent := t.TempDir()
		if err := Write(filepath.Join(parent, "out"), append([]File{{path, 0o600, nil}}, pair...)); !errors.Is(err, want) {
			t.Errorf("%q: error %v, want %v", path, err, want)
		}
		if found := tree(t, parent); len(found) > 0 {
			t.Errorf("%q: left %v", path, found)
		}
	}
	if err := Write(filepath.Join(t.TempDir(), "out"), []File{{"a", fs.ModeSetuid | 0o700, nil}}); !errors.Is(err, ErrInvalidMode) {
		t.Errorf("setuid: error %v", err)
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	if os.Getuid() == 0 {
		parent = "/sys" // also for root
	} else if err := os.Chmod(parent, 0o500); err != nil {
		t.Fatal(err)
	}
	err := Write(filepath.Join(parent, "out"), pair)
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Lstat(filepath.Join(parent, "out")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
}

// A full disk leaves the old files and nothing else.
func TestFullDisk(t *testing.T) {
	parent := t.TempDir()
	if err := unix.Mount("tmpfs", parent, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a small disk needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(parent, 0); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(parent, "out")
	if err := Write(dir, pair); err != nil {
		t.Fatal(err)
	}
	err := Replace(dir, []File{{"a/small", 0o600, []byte("x")}, {"large", 0o600, make([]byte, 1<<20)}})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // of a test
	if _, err := Update(root, File{"larger", 0o600, make([]byte, 1<<20)}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("one file: error %v", err)
	}
	want := map[string]string{"out": "drwx------"}
	for name, mode := range wantPair {
		want["out/"+name] = mode
	}
	if diff := cmp.Diff(want, tree(t, parent)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// A killed process leaves all files or none, and the next run removes the rest.
func TestCrash(t *testing.T) {
	t.Parallel()
	for round := range 8 {
		parent := t.TempDir()
		dir := filepath.Join(parent, "out")
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), childFolder+"="+dir)
		var stderr bytes.Buffer
		child.Stderr = &stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		seenEnough, cancel := context.WithTimeout(t.Context(), time.Minute)
		// Later in each round, measured by the files that the child has written.
		for seen := 0; seen <= round*35; {
			partial, err := filepath.Glob(filepath.Join(parent, ".out.partial-*", "folder", "*"))
			if err != nil {
				t.Fatal(err)
			}
			if seen = len(partial); seenEnough.Err() != nil {
				t.Fatalf("round %d: the child has written %d files: %v", round, seen, seenEnough.Err())
			}
			if _, err := os.Stat(dir); err == nil && round == 0 {
				break
			}
		}
		cancel()
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := child.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
			t.Fatalf("the child: %v\n%s", err, &stderr)
		}
		if entries, err := os.ReadDir(filepath.Join(dir, "folder")); err == nil && len(entries) != len(many()) {
			t.Errorf("round %d: half-written: %d files of %d", round, len(entries), len(many()))
		}
		if err := Replace(dir, pair); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(parent)
		if err != nil || len(entries) != 1 {
			t.Errorf("round %d: left %v, error %v", round, entries, err)
		}
	}
}

// A reader of a folder that is replaced finds all files of one version.
func TestNeverHalf(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "out")
	version := func(n int) []File {
		return []File{{"a", 0o600, []byte(strconv.Itoa(n))}, {"b/c", 0o600, []byte(strconv.Itoa(n))}}
	}
	if err := Write(dir, version(0)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		for n := range 50 {
			if err := Replace(dir, version(n)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatalf("no folder: %v", err)
		}
		a, errA := root.ReadFile("a")
		c, errC := root.ReadFile("b/c")
		// Files of the old version may be gone; those that exist are of one version.
		if errA == nil && errC == nil && !bytes.Equal(a, c) {
			t.Errorf("a is of version %s, b/c of %s", a, c)
		}
		if err := root.Close(); err != nil && !strings.Contains(err.Error(), "closed") {
			t.Fatal(err)
		}
	}
}

// CheckWritable returns the errors of Write in advance and leaves no
func TestReady(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	for name, test := range map[string]struct {
		dir     string
		replace bool
		want    error
		fails   bool
	}{
		"new":             {filepath.Join(parent, "new"), false, nil, false},
		"far below":       {filepath.Join(parent, "a", "b", "c"), false, nil, false},
		"has files":       {full, false, ErrNotEmpty, true},
		"may be replaced": {full, true, nil, false},
		"below a file":    {filepath.Join(full, "file", "below"), false, nil, true},
		"read-only":       {"/proc/sno-render", false, nil, true}, // not even root makes a folder there
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckWritable(test.dir, test.replace)
			if (err != nil) != test.fails || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got %v, want an error: %t %v", err, test.fails, test.want)
			}
		})
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(full, "file")); errors.Is(err, fs.ErrNotExist) {
		t.Error("a file is gone")
	}
}
