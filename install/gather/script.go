package gather

import "github.com/solonode/sno/install/node"

// Script returns the script that openshift-install's gather runs on the machine, as the user core, and whose result it copies from that
// user's home folder. It is for node.GatherScript, mode 0755.
func Script() string {
	return `#!/bin/sh
# Writes ~/log-bundle-ID.tar.gz: openshift-install gather bootstrap runs this with --id ID and copies the file.
set -eu
id=$(date -u +%Y%m%d%H%M%S)
if test "${1:-}" = --id; then
  id=$2
fi
file="${TAR_FILE:-${HOME}/log-bundle-${id}.tar.gz}"
umask 077
sudo /` + node.Program + ` gather --id "${id}" --output - >"${file}.part"
mv "${file}.part" "${file}"
echo "Log bundle written to ${file}"
`
}

// MastersScript returns the script that upstream's gather script runs on each control-plane node, and from whose folder it copies the
// logs then. It is for node.MastersGatherScript, mode 0755 (U-INS-28).
func MastersScript() string {
	return `#!/bin/sh
# Writes the logs of this node into the folder artifacts-ID of the temporary folder. It runs as root; the user who called sudo gets them.
set -eu
id=$(date -u +%Y%m%d%H%M%S)
if test "${1:-}" = --id; then
  id=$2
fi
umask 077
# Anybody can make a folder of the final name, or a link, so the logs are written into one that nobody knows.
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
