# Fills the disk of a new machine at /sysroot from the image that this runs in:  fill.sh HOSTNAME
set -eu

disk=/sysroot
cp --archive --one-file-system /. "$disk/"
rmdir "$disk/sysroot"

# systemd takes this word for the first boot of an installed system; an empty file is none.
echo uninitialized >"$disk/etc/machine-id"
echo "$1" >"$disk/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$1" >"$disk/etc/hosts"
# It asks a person for the language and the time zone.
ln -sf /dev/null "$disk/etc/systemd/system/systemd-firstboot.service"
# It flushes all rules, and with them those by which the engine's DNS is reached.
ln -sf /dev/null "$disk/etc/systemd/system/nftables.service"

# The hook of the image's containerd gives these to every container; the entrypoint of kind's nodes would write them.
echo sno >"$disk/kind/product_name"
cat /proc/sys/kernel/random/uuid >"$disk/kind/product_uuid"

mkdir -p "$disk/boot"
: >"$disk/boot/bootable"
