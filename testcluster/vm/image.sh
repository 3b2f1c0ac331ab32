#!/bin/sh
# Makes what virtual machines boot from Debian's packages, without root, in an existing folder:  image.sh FOLDER
set -eu

# What runs in the new system; /out is the folder.
inside=$(
	cat <<'END'
set -eu
mkdir /out
version=$(ls /lib/modules)
cp "/boot/vmlinuz-$version" /out/vmlinuz

# A tiny initramfs.
tiny=$(mktemp --directory)
mkdir $tiny/bin $tiny/dev $tiny/proc $tiny/sys
cp /bin/busybox $tiny/bin/
modules=$(for module in virtio_pci virtio_blk virtio_net qemu_fw_cfg; do modprobe --set-version "$version" --show-depends $module; done |
	sed -n 's/^insmod //p' | awk '!seen[$1]++')
for module in $modules; do cp "$module" $tiny/; done
{
	printf '%s\n' '#!/bin/busybox sh' '/bin/busybox --install -s /bin' 'export PATH=/bin' \
		'mount -t devtmpfs dev /dev' 'mount -t proc proc /proc' 'mount -t sysfs sys /sys'
	for module in $modules; do echo "insmod /${module##*/}"; done
	printf '%s\n' 'echo "sno: init"' 'sh /sys/firmware/qemu_fw_cfg/by_name/opt/sno/script/raw' 'poweroff -f'
} >$tiny/init
chmod +x $tiny/init
(cd $tiny && find . | cpio --quiet --create --format=newc | gzip >/out/tiny.img)
rm -r $tiny
END
)
export inside

# The machine's own sources of packages are those that it can reach.
apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | grep ' bookworm' |
	mmdebstrap --quiet --mode=unshare --variant=minbase --format=null \
		--include=linux-image-cloud-amd64,busybox-static,kmod,cpio,dracut \
		--customize-hook='chroot "$1" sh -c "$inside"' --customize-hook="sync-out /out '$1'" bookworm /dev/null -
