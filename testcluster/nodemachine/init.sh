# What a machine does before its system starts, as process 1 of the container: the disk at /sysroot becomes the root.
set -eu

disk=/sysroot
# The part of a DHCP server.
rm -f "$disk/etc/resolv.conf"
cp /etc/resolv.conf "$disk/etc/resolv.conf"

mount --bind "$disk" "$disk"
for folder in proc sys dev run tmp; do mount --rbind "/$folder" "$disk/$folder"; done
cd "$disk"
mkdir -p .old
pivot_root . .old
cd /
umount --lazy /.old
# Pods see mounts that are made after their start only where these are shared.
mount --make-rshared /
exec chroot / /sbin/init
