// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/solonode/sno/testcluster/engine"
)

var (
	// ErrConfig is returned for an invalid configuration.
	ErrConfig = errors.New("invalid cluster configuration")
	// ErrAlreadyExists is returned when a cluster of the same name exists.
	ErrAlreadyExists = errors.New("the cluster exists already")
	// ErrInsufficientResources is returned when this machine has too little of a resource.
	ErrInsufficientResources = errors.New("this machine has too little")
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30

	// Measured: a control-plane node with all pods of the suite takes 700 MiB, a worker 150 MiB. The rest is for other
	// processes.
	memoryBase, memoryControlPlane, memoryWorker = 500 * mebibyte, 900 * mebibyte, 250 * mebibyte
	diskBase, diskNode                           = 2 * gibibyte, 1 * gibibyte
	// Measured: instances of inotify of systemd, containerd and the kubelet of a node. Linux limits them per user.
	watchesNode, watchesBase = 12, 8

	clusterLabel = "io.x-k8s.kind.cluster"
)

type machine struct {
	memory, disk int64
	watches      int
	folder       string
}

func (c Config) leftover(containers []string) error {
	if len(containers) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s, with the containers %s: remove it with `make kind-delete NAME=%s`, or choose another -name",
		ErrAlreadyExists, c.Name, strings.Join(containers, ", "), c.Name)
}

func (c Config) check(m machine) error {
	var errs []error
	nodes := c.ControlPlanes + c.Workers
	memory := int64(memoryBase + c.ControlPlanes*memoryControlPlane + c.Workers*memoryWorker)
	if m.memory >= 0 && m.memory < memory {
		errs = append(errs, fmt.Errorf("%w: %d nodes need %d MiB of free memory, %d MiB are free: end something, or ask for fewer nodes",
			ErrInsufficientResources, nodes, memory/mebibyte, m.memory/mebibyte))
	}
	disk := int64(diskBase + nodes*diskNode)
	if m.disk >= 0 && m.disk < disk {
		errs = append(errs, fmt.Errorf("%w: %d nodes need %.1f GiB of free disk in %s, %.1f GiB are free: `docker system prune` frees what is not used",
			ErrInsufficientResources, nodes, float64(disk)/gibibyte, m.folder, float64(m.disk)/gibibyte))
	}
	if watches := watchesBase + nodes*watchesNode; m.watches >= 0 && m.watches < watches {
		errs = append(errs, fmt.Errorf("%w: %d nodes need %d instances of inotify, %d are free: end another cluster, or sysctl fs.inotify.max_user_instances=1024",
			ErrInsufficientResources, nodes, watches, m.watches))
	}
	return errors.Join(errs...)
}

func inspect(ctx context.Context, e engine.Engine, name string) (machine, []string, error) {
	m := machine{memory: -1, disk: -1, watches: -1}
	out, err := e.Output(ctx, "ps", "--all", "--filter", "label="+clusterLabel+"="+name, "--format", "{{.Names}}")
	if err != nil {
		return m, nil, err
	}
	if m.folder, err = e.Output(ctx, "info", "--format", "{{.DockerRootDir}}"); err != nil {
		return m, nil, err
	}
	// The folder of an engine on another machine is not here.
	if stat := (unix.Statfs_t{}); unix.Statfs(m.folder, &stat) == nil {
		m.disk = int64(stat.Bavail) * stat.Bsize //nolint:gosec // disks are smaller than that
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		m.memory = available(string(text))
	}
	// The engine's processes are root's, so only root can count theirs.
	if text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances"); err == nil && os.Geteuid() == 0 {
		if limit, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			m.watches = limit - watching()
		}
	}
	return m, strings.Fields(out), nil
}

func watching() int {
	count := 0
	// The pattern is valid, and processes that end meanwhile do not count.
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil && to == "anon_inode:inotify" {
			count++
		}
	}
	return count
}

func available(meminfo string) int64 {
	for line := range strings.Lines(meminfo) {
		rest, found := strings.CutPrefix(line, "MemAvailable:")
		if !found {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return -1
		}
		return kib << 10
	}
	return -1
}
