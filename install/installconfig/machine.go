// SPDX-License-Identifier: Apache-2.0

package installconfig

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type platform struct {
	None     *struct{}         `json:"none"`
	External *ExternalPlatform `json:"external"`
}

// ExternalPlatform is the section platform.external.
type ExternalPlatform struct {
	Name                   string `json:"platformName"`
	CloudControllerManager string `json:"cloudControllerManager"`
}

func (r *reader) platform(c *Config, p platform) {
	switch {
	case p.None != nil && p.External != nil:
		r.invalid("platform", "none, external", "there are two platforms; keep one")
	case p.None != nil:
		c.Platform = configv1.NonePlatformType
	case p.External != nil:
		c.Platform, c.ExternalPlatform = configv1.ExternalPlatformType, p.External
		r.oneOf("platform.external.cloudControllerManager", p.External.CloudControllerManager, "External")
		if p.External.Name == "" {
			r.required("platform.external.platformName", "name the platform")
		}
	case !slices.ContainsFunc(r.errs, func(err *field.Error) bool { return strings.HasPrefix(err.Field, "platform.") }):
		r.required("platform", `write "none: {}" below it`)
	}
}

// BootstrapInPlace is the section bootstrapInPlace.
type BootstrapInPlace struct {
	InstallationDisk string `json:"installationDisk"`
}

var (
	// device matches the names that udev gives to devices and their links.
	device          = regexp.MustCompile(`^/dev(/[A-Za-z0-9#+.:=@_\\-]+)+$`)
	folderOfDevices = regexp.MustCompile(`^/dev/(disk(/by-[a-z-]+)?|mapper|block|md|shm|pts|bus|char)$`)
	// placeholder matches names such as sdX and nvmeXn1, as documents have them.
	placeholder = regexp.MustCompile(`^/dev/(sd|vd|xvd|nvme|dasd)[A-Z]`)
)

// disk reads the field, or the older environment variable with a warning (U-INS-2).
func (r *reader) disk(c *Config) {
	const at = "bootstrapInPlace.installationDisk"
	if r.Purpose == AllInOne {
		if c.BootstrapInPlace != nil {
			r.warn("bootstrapInPlace", "an all-in-one node boots from its disk already")
		}
		return
	}
	disk := ""
	if c.BootstrapInPlace != nil {
		disk = c.BootstrapInPlace.InstallationDisk
	}
	if arguments := strings.Fields(r.InstallerArguments); len(arguments) > 0 {
		last := arguments[len(arguments)-1]
		r.warnings = append(r.warnings, DiskVariable+" is older than the field "+at+", and will be removed: use the field")
		switch {
		case strings.HasPrefix(last, "-"):
			c.InstallerArguments = arguments
		case disk != "" && disk != last:
			r.invalid(at, disk, fmt.Sprintf("%s has %q; unset the variable", DiskVariable, last))
		default:
			disk, c.InstallerArguments = last, arguments[:len(arguments)-1]
			c.BootstrapInPlace = &BootstrapInPlace{InstallationDisk: disk}
		}
	}
	const advice = "; name one device, best by /dev/disk/by-id/..."
	switch {
	case disk == "":
		r.required(at, "name the disk to install to, best by /dev/disk/by-id/...")
	case strings.Contains(disk, " -"):
		r.invalid(at, disk, "it has arguments of coreos-installer, which takes one device here; write the device alone: "+
			"the network of the installed node is that of --network-config")
	case strings.ContainsAny(disk, "<>{}$") || placeholder.MatchString(disk):
		r.invalid(at, disk, "it has a placeholder"+advice)
	case path.Clean(disk) != disk || !device.MatchString(disk):
		r.invalid(at, disk, "it is not the path of a device"+advice)
	case folderOfDevices.MatchString(disk):
		r.invalid(at, disk, "it is a folder of devices"+advice)
	}
}
