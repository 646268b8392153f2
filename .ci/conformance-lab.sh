#!/bin/sh
# Runs Kubernetes' own tests that need nodes with containers on a lab of three machines: those of class C in tests.tsv whose
# names match ONLY (an expression; default those of networking and of the API's webhooks) or, with FOCUS, all tests of the
# suite that match that one. SKIP leaves tests out. The images are made by .ci/conformance-images.sh.
# LAB has more flags of `lab up`, such as --dual-stack.
# CONFORMANCE, OUT, KONTIKI and REPORT are as for .ci/conformance.sh; PROCS tests run at a time. Needs root, and nft.
#
# All of it runs in network, mount and PID namespaces of its own, and so leaves nothing.
set -eu
if [ -z "${INSIDE:-}" ]; then
	[ "$(id -u)" = 0 ] || { echo "conformance-lab: needs root" >&2; exit 2; }
	INSIDE=1 exec unshare --net --mount --pid --fork --kill-child --mount-proc sh "$0"
fi
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
ip link set lo up
CONFORMANCE=${CONFORMANCE:-../shared/conformance} OUT=${OUT:-$HOME/.cache/kontiki-conformance} REPORT=${REPORT:-/tmp/kontiki-conformance-lab}
KONTIKI=$(realpath "${KONTIKI:-bin/kontiki}")
for needed in "$CONFORMANCE/run" "$OUT/e2e.test" "$OUT/agnhost" "$OUT/ginkgo"; do
	[ -e "$needed" ] || { echo "conformance-lab: $needed is missing (the suite is built by $CONFORMANCE/build, CONFORMANCE=DIR names another folder)" >&2; exit 2; }
done
export CONFORMANCE OUT
mkdir -p "$REPORT"
lab=$(mktemp -d /tmp/klab.XXXXXX)
ln -s "$KONTIKI" "$lab/kubectl"
trap '"$KONTIKI" lab --dir "$lab/lab" down || true; rm -rf "$lab"' EXIT
# shellcheck disable=SC2086 # LAB is several words
"$KONTIKI" lab --dir "$lab/lab" up ${LAB:-}
for machine in s1 s2 s3; do
	for image in "$OUT"/images/*.tar; do
		"$KONTIKI" image --data-dir "$lab/lab/$machine/data" import "$image" >/dev/null
	done
done
if [ -n "${FOCUS:-}" ]; then
	set -- -f "$FOCUS"
else
	awk -F'\t' '$1=="C"{print $3}' "$CONFORMANCE/tests.tsv" | grep -E "${ONLY:-^\[sig-(network|api-machinery)\]}" | grep -vE "${SKIP:-^$}" >"$REPORT/names"
	set -- "$REPORT/names"
fi
status=0
KUBECONFIG=$lab/lab/kubeconfig NUMNODES=3 NOTREADY=0 PROCS=${PROCS:-2} KUBECTL=$(command -v kubectl || echo "$lab/kubectl") \
	"$CONFORMANCE/run" "$@" "$REPORT" ${SKIP:+--ginkgo.skip="$SKIP"} >"$REPORT/log" 2>&1 || status=$?
cp "$lab/lab/s1/log" "$REPORT/s1.log"
cp "$lab/lab/s2/log" "$REPORT/s2.log"
cp "$lab/lab/s3/log" "$REPORT/s3.log"
grep -E '\[FAIL\]|^Ran |^(PASS|FAIL|SUCCESS)' "$REPORT/log" | sort -u || true
exit $status
