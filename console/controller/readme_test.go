package controller

import (
	"flag"
	"testing"

	"github.com/solonode/sno/patch/manager"
	"github.com/solonode/sno/patch/patchtest"
)

func TestReadmeFlags(t *testing.T) {
	flags := flag.NewFlagSet("x", flag.ContinueOnError)
	(&manager.Options{}).BindFlags(flags)
	(&Module{}).BindFlags(flags)
	patchtest.ReadmeFlags(t, "../README.md", flags)
}
