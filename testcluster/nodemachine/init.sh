# What a machine does before its system starts, as process 1 of the container: the disk at /sysroot becomes the root.
set -eu

disk=/sysroot
# The part of the firmware: an installer writes last what makes a disk bootable, as it does with a partition table.
if [ ! -e "$disk/boot/bootable" ]; then
	echo "There is no bootable disk: boot the live system again, which writes it from its beginning." >&2
	exit 4
fi
# The part of a DHCP server.
rm -f "$disk/etc/resolv.conf"
cp /etc/resolv.conf "$disk/etc/resolv.conf"

# Ignition, at the first boot: with the config that an installer has put on the disk, or that of a live system.
config=
for file in "$disk/boot/ignition/config.ign" /medium/config.ign; do
	if [ -e "$file" ]; then config=$file && break; fi
done
units=$disk/etc/systemd/system
if [ -n "$config" ] && [ ! -e "$disk/etc/.ignition-result.json" ]; then
	# The image's kubelet is kubeadm's, and nobody here is told when the network is there: it always is.
	rm -rf "$units/kubelet.service" "$units/kubelet.service.d" "$units/multi-user.target.wants/kubelet.service"
	ln -sf /dev/null "$units/systemd-networkd-wait-online.service"
	for stage in fetch files; do
		IGNITION_CONFIG_FILE=$config /medium/ignition --platform file --stage "$stage" --root "$disk" \
			--config-cache /run/ignition.json --state-file /run/ignition.state --log-to-stdout
	done
fi

mount --bind "$disk" "$disk"
for folder in proc sys dev run tmp; do mount --rbind "/$folder" "$disk/$folder"; done
if [ -d /disk ]; then mkdir -p "$disk/disk" && mount --bind /disk "$disk/disk"; fi
cd "$disk"
mkdir -p .old
pivot_root . .old
cd /
umount --lazy /.old
# Pods see mounts that are made after their start only where these are shared.
mount --make-rshared /
exec chroot / /sbin/init
