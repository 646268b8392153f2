#!/bin/sh
# Makes the images that Kubernetes' conformance tests run, under the names that these have, into $OUT/images: no registry is
# asked. They are of Debian's packages (downloaded by apt-get, unpacked, not installed) and of programs of Kubernetes' own module:
# agnhost, which $CONFORMANCE/build makes, and pause, which gcc does. What is there already stays.
# usage: sh .ci/conformance-images.sh     (environment: OUT, CONFORMANCE)
set -eu
OUT=${OUT:-$HOME/.cache/kontiki-conformance} CONFORMANCE=${CONFORMANCE:-../shared/conformance} GO=${GO:-go}
images=$OUT/images e2e=registry.k8s.io/e2e-test-images
mkdir -p "$images"
work=$(mktemp -d /tmp/kimages.XXXXXX)
trap 'rm -rf "$work"' EXIT

# tree NAME PACKAGE…: unpacks Debian packages and what they depend on into $work/NAME.
tree() {
	root=$work/$1 archives=$work/$1.debs
	shift
	mkdir -p "$archives/partial" "$root/usr/bin" "$root/usr/sbin" "$root/usr/lib" "$root/usr/lib64" "$root/etc" "$root/root" "$root/tmp" "$root/var/tmp"
	for d in bin sbin lib lib64; do ln -s usr/$d "$root/$d"; done # Debian's packages still know both places
	apt-get -q -y -o Dir::State::status=/dev/null -o Dir::Cache::archives="$archives" -o APT::Install-Recommends=false \
		--download-only install "$@" >"$work/apt.log" 2>&1 </dev/null || { cat "$work/apt.log" >&2; exit 1; }
	for deb in "$archives"/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --keep-directory-symlink --no-same-owner
	done
	rm -rf "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/locale" "$root/usr/share/info"
	chmod 1777 "$root/tmp" "$root/var/tmp"
	cat >"$root/etc/passwd" <<-'END'
		root:x:0:0:root:/root:/bin/sh
		www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
		nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
	END
	printf 'root:x:0:\nwww-data:x:33:\nnogroup:x:65534:\n' >"$root/etc/group"
	printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
}

# save NAME FLAG…: writes $work/NAME as the archive $images/NAME.tar.
save() {
	saved=$1
	shift
	"$work/mktree" "$@" "$work/$saved" "$images/$saved.tar"
	rm -rf "${work:?}/$saved" "$work/$saved.debs"
	echo "made $images/$saved.tar"
}

# applets NAME: gives a tree all programs of its busybox that it has not got otherwise.
applets() {
	for applet in $(chroot "$work/$1" /bin/busybox --list); do
		[ -e "$work/$1/usr/bin/$applet" ] || [ -e "$work/$1/usr/sbin/$applet" ] || ln -s busybox "$work/$1/usr/bin/$applet"
	done
}

# program PATH PACKAGE: builds a program of the suite's module or of those that it needs as $work/PATH.
program() {
	mkdir -p "$work/module" "$(dirname "$work/$1")"
	cp "$CONFORMANCE/go.mod" "$CONFORMANCE/go.sum" "$work/module" # shared/ may be read-only
	(cd "$work/module" && CGO_ENABLED=0 GOFLAGS="-mod=mod -trimpath -buildvcs=false" "$GO" build -ldflags "-s -w" -o "$work/$1" "$2")
}

missing() { [ ! -e "$images/$1.tar" ]; }

kubernetes=$(cd "$CONFORMANCE" && "$GO" list -mod=mod -m -f '{{.Dir}}' k8s.io/kubernetes)
CGO_ENABLED=0 "$GO" build -o "$work/mktree" ./internal/testimage/mktree
tools="dash bash coreutils grep sed findutils hostname libc-bin procps bind9-dnsutils curl netcat-openbsd iproute2 socat iperf util-linux wget"
if missing agnhost; then
	tree agnhost $tools busybox
	ln -s nc.openbsd "$work/agnhost/usr/bin/nc"
	applets agnhost
	cp "$OUT/agnhost" "$work/agnhost/agnhost"
	ln -s agnhost "$work/agnhost/agnhost-2"
	mkdir "$work/agnhost/uploads"
	echo 'user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh' >>"$work/agnhost/etc/passwd"
	printf 'user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n' >>"$work/agnhost/etc/group"
	install -m 644 "$kubernetes"/test/images/agnhost/porter/localhost.crt "$kubernetes"/test/images/agnhost/porter/localhost.key "$work/agnhost/"
	save agnhost -name $e2e/agnhost:2.66.1 -name $e2e/agnhost:2.55 -entrypoint /agnhost -cmd pause
fi
if missing glibc-dns-testing; then
	tree glibc-dns-testing $tools
	save glibc-dns-testing -name $e2e/glibc-dns-testing:2.1.1 -cmd sh
fi
if missing busybox; then
	tree busybox busybox bash
	ln -s bash "$work/busybox/usr/bin/sh" # Debian's busybox drops variables such as data-1, which 1.37's passes on
	applets busybox
	save busybox -name $e2e/busybox:1.37.0-2 -cmd sh
fi
if missing nginx; then
	tree nginx nginx-light dash
	mkdir -p "$work/nginx/var/log/nginx" "$work/nginx/var/lib/nginx" "$work/nginx/var/www/html" "$work/nginx/etc/nginx/modules-enabled"
	echo '<h1>Welcome to nginx!</h1>' >"$work/nginx/var/www/html/index.html"
	mkdir -p "$work/nginx/etc/nginx/sites-enabled"
	printf 'server { listen 80 default_server; root /var/www/html; }\n' >"$work/nginx/etc/nginx/sites-enabled/default"
	sed -i '1i daemon off;' "$work/nginx/etc/nginx/nginx.conf"
	save nginx -name $e2e/nginx:1.27.0-2 -name $e2e/nginx:1.28.0-2 -cmd nginx
fi
if missing regression; then
	program regression/regression-issue-74839 k8s.io/kubernetes/test/images/regression-issue-74839
	save regression -name $e2e/regression-issue-74839:1.5 -entrypoint /regression-issue-74839
fi
if missing nonewprivs; then
	program nonewprivs/usr/local/bin/nnp k8s.io/kubernetes/test/images/nonewprivs
	chmod +s "$work/nonewprivs/usr/local/bin/nnp"
	save nonewprivs -name $e2e/nonewprivs:1.4 -cmd nnp
fi
if missing nautilus; then
	mkdir "$work/nautilus"
	cp "$OUT/agnhost" "$kubernetes"/test/images/nautilus/html/* "$work/nautilus/"
	save nautilus -name $e2e/nautilus:1.8 -entrypoint /agnhost -cmd test-webserver
fi
if missing etcd; then
	program etcd/usr/local/bin/etcd go.etcd.io/etcd/server/v3
	save etcd -name registry.k8s.io/etcd:3.7.0-0
fi
if missing sample-apiserver; then
	program sample-apiserver/sample-apiserver k8s.io/sample-apiserver
	save sample-apiserver -name $e2e/sample-apiserver:1.29.2 -entrypoint /sample-apiserver
fi
if missing pause; then
	mkdir "$work/pause"
	gcc -Os -static -s -DVERSION=3.10.2 -o "$work/pause/pause" "$kubernetes/build/pause/linux/pause.c"
	save pause -name registry.k8s.io/pause:3.10.2 -entrypoint /pause
fi
