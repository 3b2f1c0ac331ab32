// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/solonode/sno/e2e/programs"
)

// completions are the file names that shells look for, by the argument of a program's command "completion".
var completions = map[string]string{"bash": "%s", "zsh": "_%s", "fish": "%s.fish", "powershell": "%s.ps1"}

// pluginCompletion is what kubectl runs to complete the arguments of "kubectl sno".
const pluginCompletion = "#!/bin/sh\nexec kubectl sno __complete \"$@\"\n"

// papers returns what archives have besides the program: licenses, completions and man pages. The program prints the
// last two itself, in a build for this machine. Command approve has no subcommands and no completion.
func (b build) papers(ctx context.Context, program programs.Program, binary string) ([]entry, error) {
	var all []entry
	for _, name := range []string{"LICENSE", "NOTICE"} {
		content, err := os.ReadFile(filepath.Join(b.Root, name))
		if err != nil {
			return nil, err
		}
		all = append(all, entry{name, 0o644, content})
	}
	if program == programs.Approve {
		page, err := b.flagPage(ctx, program, binary)
		return append(all, page), err
	}
	for shell, name := range completions {
		script, err := b.output(ctx, binary, "completion", shell)
		if err != nil {
			return nil, err
		}
		all = append(all, entry{"completion/" + shell + "/" + fmt.Sprintf(name, program.Name), 0o644, script})
	}
	if program == programs.KubectlSNO {
		all = append(all, entry{"completion/kubectl_complete-sno", 0o755, []byte(pluginCompletion)})
	}
	folder := binary + ".man"
	if err := os.Mkdir(folder, 0o755); err != nil {
		return nil, err
	}
	if _, err := b.output(ctx, binary, "man", folder); err != nil {
		return nil, err
	}
	pages, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		content, err := os.ReadFile(filepath.Join(folder, page.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, entry{"man/man1/" + page.Name(), 0o644, content})
	}
	return all, nil
}

// flagPage makes a man page from the help of a program with package flag.
func (b build) flagPage(ctx context.Context, program programs.Program, binary string) (entry, error) {
	help, err := b.output(ctx, binary, "-help")
	if err != nil {
		return entry{}, err
	}
	first, rest, _ := strings.Cut(string(help), "\n\n")
	var page bytes.Buffer
	command := &cobra.Command{
		Use: program.Name, Short: strings.TrimPrefix(strings.TrimSpace(first), program.Name+" "), DisableAutoGenTag: true,
		Long: "```\n" + strings.Trim(rest, "\n") + "\n```", Run: func(*cobra.Command, []string) {},
	}
	// The help lists the flags, and cobra would add another --help.
	command.Flags().Bool("help", false, "")
	if err := command.Flags().MarkHidden("help"); err != nil {
		return entry{}, err
	}
	err = doc.GenMan(command, &doc.GenManHeader{
		Title: strings.ToUpper(program.Name), Section: "1", Manual: "sno", Source: "sno " + b.Source.Version, Date: &b.Source.Time,
	}, &page)
	return entry{"man/man1/" + program.Name + ".1", 0o644, page.Bytes()}, err
}

// output runs a program for its standard output, or its standard error, where package flag prints help.
func (b build) output(ctx context.Context, binary string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, binary, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	// The home folder is the default of a flag of some programs.
	cmd.Env = []string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", b.Source.Time.Unix()), "HOME=/nonexistent", "PATH=" + os.Getenv("PATH")}
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(binary), strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	if out.Len()+errs.Len() == 0 && args[0] != "man" {
		return nil, fmt.Errorf("%s %s: %w", filepath.Base(binary), strings.Join(args, " "), errNoOutput)
	}
	if out.Len() == 0 {
		return errs.Bytes(), nil
	}
	return out.Bytes(), nil
}

var errNoOutput = errors.New("no output")
