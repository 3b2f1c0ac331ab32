// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/node"
	"github.com/solonode/sno/install/phase"
)

type installed struct {
	Disk   string `json:"disk"`
	SHA256 string `json:"sha256"`
}

func (l *live) current() (installed, error) {
	s, err := l.Settings()
	if err != nil {
		return installed{}, err
	}
	text, err := os.ReadFile(l.Path(node.MasterIgnition))
	if err != nil {
		return installed{}, fmt.Errorf("read the config of the installed node: %w", err)
	}
	sum := sha256.Sum256(text)
	return installed{Disk: s.InstallationDisk, SHA256: hex.EncodeToString(sum[:])}, nil
}

func (l *live) isInstalled(context.Context) (bool, error) {
	text, err := os.ReadFile(l.Path(node.InstalledRecord))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the record of the installed disk: %w", err)
	}
	var before installed
	if err := json.Unmarshal(text, &before); err != nil {
		return false, nil //nolint:nilerr // the disk is written again
	}
	now, err := l.current()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && before == now, err
}

// writeDisk writes the system image and the config to the disk (R-BIP-7). It can be repeated: the disk is written from
// its beginning.
func (l *live) writeDisk(ctx context.Context, _ *phase.Progress) error {
	s, err := l.Settings()
	if err != nil {
		return err
	}
	now, err := l.current()
	if err != nil {
		return err
	}
	arguments := []string{"install", "--ignition-file", l.Path(node.MasterIgnition)}
	for _, a := range s.KernelArguments {
		arguments = append(arguments, "--append-karg", a)
	}
	arguments = append(append(arguments, s.InstallerArguments...), s.InstallationDisk)
	if err := l.command(ctx, l.o.Installer, arguments...); err != nil {
		return err
	}
	text, err := json.Marshal(now)
	if err != nil {
		return fmt.Errorf("record the installed disk: %w", err)
	}
	return l.WriteFiles(files.File{Path: node.InstalledRecord, Mode: 0o600, Content: append(text, '\n')}) //nolint:wrapcheck // it names the file
}
