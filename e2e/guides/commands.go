// SPDX-License-Identifier: Apache-2.0

package guides

import "strings"

const (
	prompt   = "$ "
	more     = "> "
	anything = "..."
)

// Command is one command of a document and, in a console block, what it prints.
type Command struct {
	// Line is where it begins.
	Line int
	Text string
	// Shown reports whether the document has its output. Want is that, in the lines from the index from up to the index to
	// of the document.
	Shown    bool
	Want     []string
	from, to int
}

// Commands are those of the document that are run, in its order. Complete reports whether a text is a whole command of
// a shell: in an sh block a command goes on until it is.
func (d *Document) Commands(complete func(string) (bool, error)) ([]Command, error) {
	var all []Command
	for _, b := range d.Blocks {
		switch {
		case d.Cluster == nil || b.RunBy != "" || b.NotRun != "":
		case b.Language == console:
			all = append(all, b.session()...)
		case b.Language == shell:
			commands, err := b.script(complete)
			if err != nil {
				return nil, err
			}
			all = append(all, commands...)
		}
	}
	return all, nil
}

// NotRun counts the commands of the document that are run elsewhere or not at all.
func (d *Document) NotRun() int {
	count := 0
	for _, b := range d.Blocks {
		if b.RunBy == "" && b.NotRun == "" {
			continue
		}
		for _, line := range b.Lines {
			if b.Language == console && strings.HasPrefix(line, prompt) || b.Language == shell && !blank(line) {
				count++
			}
		}
	}
	return count
}

// session splits a console block.
func (b Block) session() []Command {
	var all []Command
	goesOn := false
	for i, line := range b.Lines {
		at := b.Line + i
		switch {
		case goesOn:
			last := &all[len(all)-1]
			last.Text += "\n" + strings.TrimPrefix(line, more)
			last.from, last.to = at+1, at+1
		case strings.HasPrefix(line, prompt):
			all = append(all, Command{Line: at + 1, Text: strings.TrimPrefix(line, prompt), Shown: true, from: at + 1, to: at + 1})
		case len(all) > 0:
			last := &all[len(all)-1]
			last.Want = append(last.Want, line)
			last.to = at + 1
		}
		goesOn = strings.HasSuffix(line, `\`) && (goesOn || strings.HasPrefix(line, prompt))
	}
	return all
}

// script splits an sh block.
func (b Block) script(complete func(string) (bool, error)) ([]Command, error) {
	var all []Command
	text := ""
	for i, line := range b.Lines {
		if text == "" && blank(line) {
			continue
		}
		if text == "" {
			all = append(all, Command{Line: b.Line + i + 1})
		}
		text += line + "\n"
		whole, err := complete(text)
		if err != nil {
			return nil, err
		}
		if whole || i == len(b.Lines)-1 {
			all[len(all)-1].Text = strings.TrimSuffix(text, "\n")
			text = ""
		}
	}
	return all, nil
}

// blank reports whether a line of a script has no command.
func blank(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, "#")
}
