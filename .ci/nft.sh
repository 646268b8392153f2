#!/bin/sh
# nft is the one program that a node takes from the machine (Services, host ports). Installs Debian's
# nftables if it is missing and may be installed; else says in one line what goes without it.
command -v nft >/dev/null 2>&1 || [ -x /usr/sbin/nft ] && exit 0
install() { apt-get install -y -q --no-install-recommends nftables; }
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 &&
	{ install || { apt-get update -q && install; }; } >/dev/null 2>&1 </dev/null; then
	echo "installed Debian's nftables"
else
	echo "nft is not on this machine: pods run, but without host ports (install the package nftables)"
fi
