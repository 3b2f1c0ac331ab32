package cli

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// progress says on a terminal what is being waited for. Elsewhere it says nothing.
type progress struct {
	out       io.Writer
	done, all int
}

func (p *program) progress(all int) *progress {
	if !isTerminal(p.ErrOut) {
		return &progress{out: io.Discard, all: all}
	}
	return &progress{out: p.ErrOut, all: all}
}

// clearLine goes to the beginning of the line and empties it.
const clearLine = "\r\x1b[K"

func (p *progress) next(what string) {
	p.done++
	fmt.Fprintf(p.out, clearLine+"%s (%d/%d)", what, p.done, p.all)
}

func (p *progress) end() { fmt.Fprint(p.out, clearLine) }

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// colorful tells whether colours may be written.
func colorful(out io.Writer) bool {
	return isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
