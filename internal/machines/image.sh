#!/bin/sh
# Makes the root directory of a machine: Debian 12 with systemd, nothing of Kontiki. Usage: image.sh DIR. Needs root,
# mmdebstrap and a Debian mirror.
set -eu
dir=$1
rm -rf "$dir.new"

# A machine has no way out, so nftables lies in apt's cache, where `kontiki install` finds it as from a mirror. systemd-nspawn
# mounts the hierarchies of cgroup v1 read only; on a machine nobody does.
mmdebstrap --quiet --variant=minbase --skip=cleanup/apt --include=systemd-sysv,udev,dbus,iproute2,iputils-ping,procps,curl,kmod \
	--customize-hook='chroot "$1" apt-get install -y -q --no-install-recommends --download-only nftables >&2' \
	--customize-hook='chroot "$1" systemctl enable systemd-networkd' \
	--customize-hook='rm -f "$1/etc/hostname" "$1/etc/resolv.conf" && : >"$1/etc/machine-id"' \
	--customize-hook='printf "127.0.0.1 localhost\n" >"$1/etc/hosts"' \
	bookworm "$dir.new"

cat >"$dir.new/etc/systemd/system/writable-cgroups.service" <<'UNIT'
[Unit]
DefaultDependencies=no
Before=sysinit.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'for d in /sys/fs/cgroup /sys/fs/cgroup/*/; do mountpoint -q $d && mount -o remount,rw,bind $d; done; true'
[Install]
WantedBy=sysinit.target
UNIT
chroot "$dir.new" systemctl enable writable-cgroups
mv "$dir.new" "$dir"
