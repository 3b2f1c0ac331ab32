// SPDX-License-Identifier: Apache-2.0

package commandline

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
)

func TestExit(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	failed := errors.New("no disk")
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		code int
		want string
	}{
		"done":        {t.Context(), nil, 0, ""},
		"help":        {t.Context(), fmt.Errorf("flags: %w", flag.ErrHelp), 0, ""},
		"failed":      {t.Context(), failed, 1, "sno-x: no disk\n"},
		"interrupted": {ended, failed, exitStop, "sno-x: interrupted\n"},
		"done anyway": {ended, nil, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var errs bytes.Buffer
			if code := exit(test.ctx, "sno-x", test.err, &errs); code != test.code || errs.String() != test.want {
				t.Errorf("exit code %d, %q", code, errs.String())
			}
		})
	}
}
