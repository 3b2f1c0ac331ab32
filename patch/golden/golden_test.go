// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		noError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		noError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

func TestCompare(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		got   map[string]string
		want  []string // in the error; none for no error
	}{
		"equal": {map[string]string{"input/a": "", "want.yaml": "x\n", "b.yaml": "y"}, map[string]string{"want.yaml": "x\n", "b.yaml": "y"}, nil},
		"different": {map[string]string{"want.yaml": "x\ny\n"}, map[string]string{"want.yaml": "x\nz\n"}, []string{"want.yaml", "-want +got", `"y"`,
			`"z"`}},
		"line break": {map[string]string{"want.yaml": "x"}, map[string]string{"want.yaml": "x\n"}, []string{"want.yaml"}},
		"missing":    {map[string]string{"input/a": ""}, map[string]string{"want.yaml": "x"}, []string{"want.yaml does not exist"}},
		"unknown":    {map[string]string{"want.yaml": "x", "old.yaml": ""}, map[string]string{"want.yaml": "x"}, []string{"nothing produces", "old.yaml"}},
		"nothing":    {map[string]string{"input/a": ""}, nil, []string{"nothing was produced"}},
		"all at once": {
			map[string]string{"want.yaml": "x", "old.yaml": ""}, map[string]string{"want.yaml": "y", "new.yaml": ""},
			[]string{"want.yaml (-want", "new.yaml does not exist", "old.yaml"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, test.files)
			err := compare(dir, test.got)
			if (err != nil) != (len(test.want) > 0) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			for _, text := range test.want {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not contain %q", err, text)
				}
			}
			if len(test.got) == 0 {
				return
			}
			noError(t, rewrite(dir, test.got))
			if err := compare(dir, test.got); err != nil {
				t.Errorf("after rewriting: %v", err)
			}
			if _, had := test.files["input/a"]; had {
				if _, err := os.Stat(filepath.Join(dir, "input", "a")); err != nil {
					t.Errorf("rewriting removed the input: %v", err)
				}
			}
		})
	}
}

func TestTest(t *testing.T) {
	dir := folder(t, map[string]string{
		"one/input/namespaces/a.yaml": "a", "one/want.yaml": "namespaces/a.yaml: a\n",
		"two/input/b.yaml": "b", "two/want.yaml": "b.yaml: b\n",
	})
	var cases []string
	Test(t, dir, func(t *testing.T, input fs.FS) map[string]string {
		cases = append(cases, t.Name())
		var text strings.Builder
		err := fs.WalkDir(input, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := fs.ReadFile(input, name)
			text.WriteString(name + ": " + string(content) + "\n")
			return err
		})
		noError(t, err)
		return map[string]string{"want.yaml": text.String()}
	})
	if diff := cmp.Diff([]string{"TestTest/one", "TestTest/two"}, cases); diff != "" {
		t.Errorf("cases (-want +got):\n%s", diff)
	}
}
