#!/bin/sh
# Makes what virtual machines boot from Debian's packages, without root, in an existing folder:  image.sh FOLDER [NODE]
#
# vmlinuz and tiny.img boot to a script. NODE is a tar archive with Kubernetes' programs and containerd's images; with it
# there are also disk.raw, an installed disk, and live.iso, which installs one. Both are laid out as CoreOS', and hold the
# file system of "The image" in docs/all-in-one.md.
set -eu
folder=$1 node=${2:-}

packages=linux-image-cloud-amd64,busybox-static,kmod,cpio,dracut
[ -z "$node" ] || packages=$packages,systemd-sysv,udev,dbus,network-manager,dracut-network,ignition,curl,zstd,fdisk,openssh-server,sudo,libnss-myhostname,\
containerd,runc,containernetworking-plugins,iptables,iproute2,conntrack,socat,ethtool,jq,procps,\
grub-pc-bin,grub-efi-amd64-bin,grub-common,mtools,dosfstools,e2fsprogs,squashfs-tools,xorriso

# What runs in the new system; /out is the folder.
inside=$(
	cat <<'END'
set -eu
mkdir -p /out
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
[ -e /usr/bin/kubelet ] || exit 0

# The node. As on CoreOS, /usr is read-only, what is written is in /etc and /var, and no unit is enabled but those of
# packages and of Ignition.
containerd config default | sed -e 's/SystemdCgroup = false/SystemdCgroup = true/' -e 's,/opt/cni/bin,/usr/lib/cni,' \
	-e 's,sandbox_image = .*,sandbox_image = "registry.k8s.io/pause:3.10",' >/etc/containerd/config.toml
echo 'runtime-endpoint: unix:///run/containerd/containerd.sock' >/etc/crictl.yaml
for folder in home opt root srv usr/local; do
	to=var/$(echo $folder | tr --delete /)
	mkdir -p /$folder
	mv /$folder /$to
	ln --symbolic --relative /$to /$folder
done
useradd --create-home --groups sudo --shell /bin/bash core
echo '%sudo ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/sudo
echo 'AuthorizedKeysFile .ssh/authorized_keys .ssh/authorized_keys.d/ignition' >/etc/ssh/sshd_config.d/ignition.conf
echo uninitialized >/etc/machine-id
rm -f /etc/hostname /var/lib/dbus/machine-id
# The initramfs would take a line of fstab for its own /usr.
printf '%s\n' '[Mount]' What=/usr Where=/usr Options=bind,ro '[Install]' WantedBy=local-fs.target >/etc/systemd/system/usr.mount
# /boot is mounted when it is used: the live system has none.
echo 'LABEL=boot /boot ext4 ro,noauto,x-systemd.automount 0 0' >/etc/fstab
echo 'disable *' >/usr/lib/systemd/system-preset/99-default.preset
systemctl mask systemd-firstboot.service
# There is no SELinux, but Debian's Ignition always labels what it has written.
mkdir -p /etc/selinux
printf 'SELINUX=disabled\nSELINUXTYPE=none\n' >/etc/selinux/config
ln -s true /usr/bin/setfiles
cat >/etc/systemd/system/ignition-firstboot-complete.service <<'UNIT'
[Unit]
Description=Mark the first boot as complete
ConditionKernelCommandLine=ignition.firstboot
ConditionKernelCommandLine=!coreos.liveiso
[Service]
Type=oneshot
ExecStart=/bin/sh -ec 'mount -o remount,rw /boot && rm /boot/ignition.firstboot && mount -o remount,ro /boot'
[Install]
WantedBy=multi-user.target
UNIT
systemctl enable usr.mount ignition-firstboot-complete.service
cat >/usr/bin/coreos-installer <<'INSTALLER'
#!/bin/sh
# A stand-in that does to a disk what the program of this name does: the image, its partition table last, then the config
# and the flag of the first boot. After an error the disk is not bootable.
#
#   coreos-installer install --ignition-file FILE [--append-karg ARGUMENT...] DISK
set -eu
images=/run/media/iso/images config= arguments=
[ "$1" = install ] && shift
while [ $# -gt 1 ]; do
	case $1 in
	--ignition-file) config=$2 ;;
	--append-karg) arguments="$arguments $2" ;;
	*)
		echo "coreos-installer: unknown argument $1" >&2
		exit 2
		;;
	esac
	shift 2
done
disk=$1
have=$(blockdev --getsize64 "$disk") need=$(cat $images/disk.size)
if [ "$have" -lt "$need" ]; then
	echo "coreos-installer: $disk has $have bytes, and the image $need" >&2
	exit 1
fi
trap 'result=$?; [ $result = 0 ] || blkdiscard --zeroout --length 1M "$disk"; exit $result' EXIT
blkdiscard --zeroout "$disk"
zstd --decompress --stdout $images/disk.raw.zst | {
	dd bs=1M count=1 iflag=fullblock of=/run/first-mebibyte status=none
	dd bs=1M seek=1 iflag=fullblock conv=sparse,fsync of="$disk" status=none
}
dd if=/run/first-mebibyte of="$disk" conv=fsync status=none
blockdev --rereadpt "$disk"
udevadm settle
mkdir -p /run/boot
mount /dev/disk/by-label/boot /run/boot
mkdir -m 700 /run/boot/ignition
install --mode=600 "$config" /run/boot/ignition/config.ign
echo "set arguments='ignition.platform.id=metal$arguments'" >/run/boot/grub/arguments.cfg
sync --file-system /run/boot
: >/run/boot/ignition.firstboot
umount /run/boot
INSTALLER
chmod +x /usr/bin/coreos-installer

# The initramfs, with what CoreOS adds to Ignition's module: the config of another initramfs or of the boot partition, the
# root of a live system, and the end of the initramfs' own network.
module=/usr/lib/dracut/modules.d/35ignition-setup
mkdir -p $module
cat >$module/module-setup.sh <<'MODULE'
depends() { echo ignition; }
install() {
	inst_multiple cp mount umount rm ip mkdir grep
	inst_script "$moddir/is-live-image" /usr/bin/is-live-image
	for unit in setup live down; do
		inst_script "$moddir/$unit" /usr/sbin/ignition-$unit
		inst_simple "$moddir/$unit.service" "$systemdsystemunitdir/ignition-$unit.service"
		mkdir -p "$initdir$systemdsystemunitdir/initrd.target.requires"
		ln_r "$systemdsystemunitdir/ignition-$unit.service" "$systemdsystemunitdir/initrd.target.requires/ignition-$unit.service"
	done
}
MODULE
unit() {
	printf '%s\n' '[Unit]' DefaultDependencies=false OnFailure=emergency.target OnFailureJobMode=isolate "$@" \
		'[Service]' Type=oneshot RemainAfterExit=yes "ExecStart=/usr/sbin/ignition-$name"
}
settled='Wants=systemd-udev-settle.service
After=systemd-udev-settle.service'
name=setup
unit "$settled" Before=ignition-fetch-offline.service ConditionKernelCommandLine=ignition.firstboot >$module/setup.service
name=live
unit "$settled" Before=initrd-root-fs.target ConditionKernelCommandLine=coreos.liveiso >$module/live.service
name=down
unit After=ignition-files.service Before=initrd-parse-etc.service ConditionKernelCommandLine=ignition.firstboot >$module/down.service
cat >$module/is-live-image <<'SCRIPT'
#!/bin/sh
grep -q coreos.liveiso /proc/cmdline
SCRIPT
cat >$module/setup <<'SCRIPT'
#!/bin/sh
set -eu
mkdir -p /usr/lib/ignition
if [ -e /config.ign ]; then
	cp /config.ign /usr/lib/ignition/user.ign
elif ! is-live-image; then
	mkdir -p /run/boot
	mount -o ro /dev/disk/by-label/boot /run/boot
	if [ -e /run/boot/ignition/config.ign ]; then cp /run/boot/ignition/config.ign /usr/lib/ignition/user.ign; fi
	umount /run/boot
fi
SCRIPT
cat >$module/live <<'SCRIPT'
#!/bin/sh
set -eu
mkdir -p /run/media/iso /run/live
mount -o ro /dev/disk/by-label/sno-live /run/media/iso
mount -t tmpfs -o size=75% live /run/live
mkdir /run/live/lower /run/live/upper /run/live/work
mount -o ro,loop /run/media/iso/images/pxeboot/rootfs.img /run/live/lower
mount -t overlay -o lowerdir=/run/live/lower,upperdir=/run/live/upper,workdir=/run/live/work root /sysroot
# containerd's own overlays cannot be on one.
mount -t tmpfs -o size=75% var /sysroot/var
cp -a /run/live/lower/var/. /sysroot/var/
SCRIPT
cat >$module/down <<'SCRIPT'
#!/bin/sh
set -eu
systemctl stop nm-initrd.service
for link in /sys/class/net/*; do
	case $link in */lo) continue ;; esac
	ip address flush dev "${link##*/}"
	ip link set dev "${link##*/}" down
done
rm -rf /run/NetworkManager
SCRIPT
chmod +x $module/is-live-image $module/setup $module/live $module/down
dracut --quiet --force --no-hostonly --add 'network-manager ignition ignition-setup' --omit 'crypt dm' --compress 'zstd -1' \
	--drivers 'virtio_blk virtio_scsi virtio_net virtio_pci virtio_rng sr_mod isofs overlay squashfs loop qemu_fw_cfg ext4' /out/initrd.img "$version"

rm -rf /boot/* /usr/share/doc/* /usr/share/man/* /usr/share/locale/* /var/lib/apt/lists/* /var/cache/apt/*
everything() { tar --create --one-file-system --exclude=./out --exclude='./tmp/*' --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' --directory=/ .; }
mkdir /out/root
everything | tar --extract --directory=/out/root

work=$(mktemp --directory)
# core LABEL FORMAT FILE MODULE... writes a GRUB that reads its configuration from a file system.
core() {
	label=$1 format=$2 file=$3
	shift 3
	printf '%s\n' serial 'terminal_output serial' "search --set=root --label $label" 'configfile /grub/grub.cfg' >$work/grub.cfg
	grub-mkimage --format=$format --output=$file --prefix=/grub --config=$work/grub.cfg "$@" \
		part_gpt ext2 fat iso9660 search search_label normal configfile linux echo test serial terminal
}
# esp LABEL FILE writes a file system for UEFI with it.
esp() {
	core $1 x86_64-efi $work/bootx64.efi
	rm -f $2
	mkfs.vfat -n EFI -C $2 8192 >/dev/null
	mmd -i $2 ::EFI ::EFI/BOOT
	mcopy -i $2 $work/bootx64.efi ::EFI/BOOT/BOOTX64.EFI
}

# The disk: a partition for GRUB, one for UEFI, boot and root.
boot=/out/boot
mkdir -p $boot/grub
cp /out/vmlinuz /out/initrd.img $boot/
: >$boot/ignition.firstboot
cat >$boot/grub/grub.cfg <<'GRUB'
set arguments=ignition.platform.id=qemu
if [ -f /grub/arguments.cfg ]; then source /grub/arguments.cfg; fi
if [ -f /ignition.firstboot ]; then set first="ignition.firstboot rd.neednet=1 ip=dhcp systemd.journald.forward_to_console=1"; fi
linux /vmlinuz root=LABEL=root rw console=ttyS0 panic=-1 systemd.default_timeout_start_sec=15min $arguments $first
initrd /initrd.img
boot
GRUB
disk=/out/disk.raw
truncate --size=5G $disk
sfdisk --quiet $disk <<'TABLE'
label: gpt
start=2048, size=2048, type=21686148-6449-6E6F-744E-656564454649
start=4096, size=16384, type=uefi
start=20480, size=786432
start=806912, size=9676800
TABLE
put() { dd of=$disk conv=notrunc status=none "$@"; }
# What grub-bios-setup does to a disk, and cannot do to a file: the boot sector refers to the image, and that to its rest.
core boot i386-pc $work/core.img biosdisk
put if=/usr/lib/grub/i386-pc/boot.img bs=440 count=1
put if=$work/core.img bs=512 seek=2048
printf '\000\010\000\000\000\000\000\000' | put bs=1 seek=92
printf '\001\010\000\000\000\000\000\000' | put bs=1 seek=$((2048 * 512 + 500))
esp boot $work/efi.img
put if=$work/efi.img bs=512 seek=4096
mke2fs -q -t ext4 -L boot -d $boot -E offset=$((20480 * 512)) $disk 384M
mke2fs -q -t ext4 -L root -d /out/root -E offset=$((806912 * 512)) $disk 4838400k

# The live ISO.
iso=/out/iso
mkdir -p $iso/images/pxeboot $iso/coreos $iso/grub
cp /out/vmlinuz /out/initrd.img $iso/images/pxeboot/
mksquashfs /out/root $iso/images/pxeboot/rootfs.img -quiet -no-progress -comp lz4
zstd --quiet -T0 $disk -o $iso/images/disk.raw.zst
stat --format=%s $disk >$iso/images/disk.size
truncate --size=256K $iso/images/ignition.img
echo '{"file": "images/ignition.img"}' >$iso/coreos/igninfo.json
cat >$iso/grub/grub.cfg <<'GRUB'
linux /images/pxeboot/vmlinuz coreos.liveiso=sno-live console=ttyS0 panic=-1 systemd.default_timeout_start_sec=15min ignition.firstboot ignition.platform.id=metal rd.neednet=1 ip=dhcp systemd.journald.forward_to_console=1
initrd /images/pxeboot/initrd.img /images/ignition.img
boot
GRUB
core sno-live i386-pc-eltorito $iso/images/bios.img biosdisk
esp sno-live $iso/images/efiboot.img
xorriso -as mkisofs -quiet -volid sno-live -rational-rock -joliet -output /out/live.iso \
	-eltorito-boot images/bios.img -no-emul-boot -boot-load-size 4 -boot-info-table --grub2-boot-info \
	-eltorito-alt-boot -e images/efiboot.img -no-emul-boot $iso
rm -r /out/root $boot $iso /out/initrd.img
END
)
export inside
export INITRD=No # the hook of dracut makes none then

# The machine's own sources of packages are those that it can reach.
apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | grep ' bookworm' |
	mmdebstrap --verbose --mode=unshare --variant=minbase --format=null --include=$packages \
		${node:+--customize-hook="tar-in '$node' /"} \
		--customize-hook='chroot "$1" sh -c "$inside"' --customize-hook="sync-out /out '$folder'" bookworm /dev/null -
