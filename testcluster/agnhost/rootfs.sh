#!/bin/sh
# Makes the file system of the image agnhost from Debian's packages, in place of Alpine's. Needs root and debootstrap.
#
#   rootfs.sh WORK
#
# WORK is an empty folder: rootfs.tar appears there.
set -eu

work=$1
root=$work/rootfs

# The machine's own source of packages is the one that it can reach.
mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null || true; } |
	sed -n 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\/debian\/\{0,1\}\) .*/\2/p' | head -n 1)
[ -n "$mirror" ] || mirror=$(sed -n 's/^URIs: *\([^ ]*\/debian\/\{0,1\}\) *$/\1/p' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1)
[ -n "$mirror" ] || {
	echo "no Debian mirror in the sources of apt" >&2
	exit 1
}

# The packages of Kubernetes' Dockerfile, without iperf, and with busybox' wget, which Alpine has.
debootstrap --variant=minbase --include=bind9-dnsutils,curl,netcat-openbsd,iproute2,util-linux,wget bookworm "$root" "$mirror"

mkdir "$root/uploads"
ln -s agnhost "$root/agnhost-2"
chroot "$root" sh -eu <<'END'
useradd --uid 1000 --create-home user-defined-in-image
groupadd --gid 50000 group-defined-in-image
usermod --append --groups group-defined-in-image user-defined-in-image
apt-get clean
rm -rf /var/lib/apt/lists/* /usr/share/doc/* /usr/share/man/* /usr/share/locale/* /var/log/* /usr/share/zoneinfo/* /usr/lib/*/perl* /usr/share/perl*
END
tar --create --directory="$root" --exclude=./dev/* --numeric-owner --file="$work/rootfs.tar" .
rm -rf "$root"
