// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/engine"
)

// interruptLimit is for the end after Ctrl-C.
const interruptLimit = 6 * time.Minute

// Interrupt runs a suite once more as another command, and ends it as Ctrl-C does when the function returns. Nothing of
// it may be left: containers, volumes, networks, images, kubeconfigs, temporary files, processes. The cache of builds
// does not count.
func Interrupt(ctx context.Context, command *exec.Cmd, reached func(*gexec.Session)) {
	ginkgo.GinkgoHelper()
	temporary := ginkgo.GinkgoT().TempDir()
	before := leftovers(ctx, temporary)
	command.Env = append(os.Environ(), "TMPDIR="+temporary)
	// A terminal sends the signal to its whole process group.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	session := Must(gexec.Start(command, ginkgo.GinkgoWriter, ginkgo.GinkgoWriter))
	end := func(ctx context.Context) {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGINT) // it may have ended
		gomega.Eventually(ctx, session).WithTimeout(interruptLimit).Should(gexec.Exit())
	}
	ginkgo.DeferCleanup(end)
	reached(session)
	end(ctx)
	gomega.Expect(session.ExitCode()).NotTo(gomega.BeZero())
	gomega.Expect(session.Out.Contents()).To(gomega.ContainSubstring("Interrupted by User"))
	gomega.Expect(leftovers(ctx, temporary)).To(gomega.Equal(before))
}

// leftovers returns everything in the engine, the kubeconfig files of clusters, the files in a temporary folder, and
// the processes that use it.
func leftovers(ctx context.Context, temporary string) map[string][]string {
	ginkgo.GinkgoHelper()
	e := Must(engine.Find(ctx))
	found := map[string][]string{}
	for what, args := range map[string][]string{
		"containers": {"ps", "--all", "--format", "{{.Names}}"},
		"volumes":    {"volume", "ls", "--quiet"},
		"networks":   {"network", "ls", "--format", "{{.Name}}"},
		"images":     {"image", "ls", "--all", "--no-trunc", "--format", "{{.Repository}}:{{.Tag}} {{.ID}}"},
	} {
		found[what] = slices.Sorted(strings.Lines(Must(e.Output(ctx, args...))))
	}
	found["kubeconfigs"] = Must(filepath.Glob(filepath.Join(filepath.Dir(Must(assets.CacheDir())), "kind", "*.kubeconfig*")))
	found["files"] = Must(filepath.Glob(filepath.Join(temporary, "*")))
	for _, file := range Must(filepath.Glob("/proc/[0-9]*/environ")) {
		// Processes that end meanwhile or belong to other users cannot be read.
		text, _ := os.ReadFile(file)
		if slices.Contains(strings.Split(string(text), "\x00"), "TMPDIR="+temporary) {
			called, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			found["processes"] = append(found["processes"], strings.ReplaceAll(string(called), "\x00", " "))
		}
	}
	return found
}
