#!/bin/sh
# Makes the file system of a node's image, as kind's own image has it, from Debian's packages. Needs root and debootstrap.
#
#   rootfs.sh WORK FILES BIN
#
# WORK is an empty folder: rootfs.tar and kube-proxy.tar appear there. FILES is images/base/files of the kind module. BIN holds
# kubelet, kubeadm, kubectl, crictl, crio with pinns beside its file, and a file version.
set -eu

work=$1 files=$2 bin=$3
root=$work/rootfs

# The machine's own source of packages is the one that it can reach.
mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null || true; } |
	sed -n 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\/debian\/\{0,1\}\) .*/\2/p' | head -n 1)
[ -n "$mirror" ] || mirror=$(sed -n 's/^URIs: *\([^ ]*\/debian\/\{0,1\}\) *$/\1/p' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1)
[ -n "$mirror" ] || {
	echo "no Debian mirror in the sources of apt" >&2
	exit 1
}

debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,containerd,runc,conmon,containernetworking-plugins,iptables,nftables,\
iproute2,conntrack,socat,ethtool,mount,kmod,procps,util-linux,hostname,jq,ca-certificates,libseccomp2,curl,ebtables,haproxy \
	bookworm "$root" "$mirror"

# What kind's Dockerfile does, in its order.
cp -R "$files/." "$root/"
find "$root/etc/containerd" "$root/etc/systemd/system" "$root/kind" -type f -exec chmod 644 {} +
chmod 755 "$root/usr/local/bin/entrypoint" "$root/usr/local/bin/clean-install" "$root/kind" "$root/kind/bin" "$root"/kind/bin/*
find "$root/lib/systemd/system/sysinit.target.wants/" -name systemd-tmpfiles-setup.service -delete
rm -f "$root"/lib/systemd/system/multi-user.target.wants/* "$root"/etc/systemd/system/*.wants/* \
	"$root"/lib/systemd/system/local-fs.target.wants/* "$root"/lib/systemd/system/sockets.target.wants/*udev* \
	"$root"/lib/systemd/system/sockets.target.wants/*initctl* "$root"/lib/systemd/system/basic.target.wants/*
echo ReadKMsg=no >>"$root/etc/systemd/journald.conf"
ln -sf /usr/lib/systemd/systemd "$root/sbin/init"

# Debian's container runtime where kind's units look for it.
for program in containerd ctr containerd-shim-runc-v2; do ln -sf "/usr/bin/$program" "$root/usr/local/bin/$program"; done
ln -sf /usr/sbin/runc "$root/usr/local/sbin/runc"
mkdir -p "$root/opt/cni/bin" "$root/etc/kubernetes/manifests"
cp "$root"/usr/lib/cni/* "$root/opt/cni/bin/"
cp "$bin/kubelet" "$bin/kubeadm" "$bin/kubectl" "$root/usr/bin/"
cp "$bin/crictl" "$root/usr/local/bin/"
cp "$bin/version" "$root/kind/version"

# A machine without CAP_SYS_RESOURCE cannot lower the score by which the kernel chooses whom to kill.
sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' "$root/etc/containerd/config.toml"
sed -i '/^OOMScoreAdjust=/d' "$root/etc/systemd/system/containerd.service"

# CRI-O, which only a kubelet that wants it starts.
cp "$bin/crio" "$(dirname "$(readlink -f "$bin/crio")")/pinns" "$root/usr/bin/"
mkdir -p "$root/etc/crio/crio.conf.d" "$root/etc/containers"
echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$root/etc/containers/policy.json"
cat >"$root/etc/crio/crio.conf.d/10-node.conf" <<'END'
[crio.image]
pause_image = "registry.k8s.io/pause:3.10"
[crio.runtime]
default_runtime = "runc"
[crio.runtime.runtimes.runc]
runtime_path = "/usr/libexec/crio/runc"
END
cat >"$root/etc/systemd/system/crio.service" <<'END'
[Unit]
After=network-online.target
Before=kubelet.service
[Service]
Type=notify
ExecStart=/usr/bin/crio
TasksMax=infinity
Restart=on-failure
END
mkdir -p "$root/usr/libexec/crio"
cat >"$root/usr/libexec/crio/runc" <<'END'
#!/bin/sh
# As containerd: its restrict_oom_score_adj, and no capabilities for privileged containers that this machine does not have.
own=$(setpriv --dump | sed -n 's/^Capability bounding set: //p')
previous=
for word; do
	case $previous in --bundle | -b)
		jq --argjson least "$(cat /proc/self/oom_score_adj)" --arg own "$own" '.process.oomScoreAdj |= ([. // $least, $least] | max) |
			($own | split(",") | map("CAP_" + ascii_upcase)) as $own | .process.capabilities |= map_values(map(select(IN($own[]))))' "$word/config.json" >"$word/config.json.new"
		mv "$word/config.json.new" "$word/config.json"
		;;
	esac
	previous=$word
done
exec /usr/sbin/runc "$@"
END
chmod 755 "$root/usr/libexec/crio/runc"

chroot "$root" sh -eu <<'END'
systemctl enable kubelet.service containerd.service undo-mount-hacks.service
systemctl mask systemd-binfmt.service haproxy.service
ctr oci spec |
	jq '.hooks.createContainer[.hooks.createContainer | length] |= . + {"path": "/kind/bin/mount-product-files.sh"} | del(.process.rlimits)' \
		>/etc/containerd/cri-base.json
apt-get clean
rm -rf /var/lib/apt/lists/* /usr/share/doc/* /usr/share/man/* /usr/share/locale/*
# kube-proxy writes its rules with nft.
{
	echo /usr/sbin/nft
	ldd /usr/sbin/nft | tr -s ' \t' '\n' | grep '^/'
} | sort -u | tar --create --dereference --absolute-names --transform='s,^/,,' --mtime=@0 --owner=0 --group=0 --files-from=- --file=/kube-proxy.tar
END
mv "$root/kube-proxy.tar" "$work/kube-proxy.tar"
tar --create --directory="$root" --numeric-owner --file="$work/rootfs.tar" .
rm -rf "$root"
