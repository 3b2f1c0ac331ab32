// SPDX-License-Identifier: Apache-2.0

package gather

import "github.com/solonode/sno/install/node"

// head of both scripts, which have the argument --id ID.
const head = `set -eu
id=$(date -u +%Y%m%d%H%M%S)
if test "${1:-}" = --id; then
  id=$2
fi
umask 077
`

// Script returns the script for node.GatherScript, mode 0755. openshift-install's gather runs it as user core, and
// copies the result from that user's home folder.
func Script() string {
	return `#!/bin/sh
# Writes ~/log-bundle-ID.tar.gz: openshift-install gather bootstrap runs this with --id ID and copies the file.
` + head + `file="${TAR_FILE:-${HOME}/log-bundle-${id}.tar.gz}"
sudo /` + node.Program + ` gather --id "${id}" --output - >"${file}.part"
mv "${file}.part" "${file}"
echo "Log bundle written to ${file}"
`
}

// MastersScript returns the script for node.MastersGatherScript, mode 0755. Upstream's gather script runs it on each
// control-plane node, and copies the logs from its folder (U-INS-28).
func MastersScript() string {
	return `#!/bin/sh
# Writes the logs of this node into the folder artifacts-ID of the temporary folder. It runs as root; the files belong to the user who called sudo.
` + head + `# Any user can create a folder or a link with the final name, so the logs are written into a folder with a random name.
work=$(mktemp -d)
trap 'rm -rf "${work}"' EXIT
/` + node.Program + ` gather --id "${id}" --node-only --output - | tar -xz -C "${work}" --strip-components=1
if test -n "${SUDO_UID:-}"; then
  chown -R "${SUDO_UID}:${SUDO_GID}" "${work}"
fi
dir="${TMPDIR:-/tmp}/artifacts-${id}"
rm -rf "${dir}"
mv -T "${work}" "${dir}"
`
}
