#!/bin/sh
# Runs Kubernetes' own conformance tests of one class against a fresh `kontiki dev` with a simulated node.
# CONFORMANCE is the folder with run and tests.tsv (default ../shared/conformance), CLASS is A, B or C, REPORT is where the log and
# the JUnit report go, SKIP an expression for tests to leave out, KONTIKI the program. The suite is built by $CONFORMANCE/build.
#
# As root, all of it runs in a network namespace of its own: the server has an address there that pods could reach, so that
# it stands in the endpoints of the Service kubernetes. Elsewhere it runs on loopback, and the test of those endpoints fails.
set -eu
address=127.0.0.1
if [ "$(id -u)" = 0 ] && [ -z "${OWN_NETWORK:-}" ] && command -v ip >/dev/null && unshare --net true 2>/dev/null; then
	OWN_NETWORK=1 exec unshare --net sh "$0"
elif [ -n "${OWN_NETWORK:-}" ]; then
	address=10.99.0.1
	ip link set lo up
	ip link add eth0 type veth peer name eth1
	ip address add $address/24 dev eth0
	ip link set eth0 up
	ip link set eth1 up
	ip route add default dev eth0
fi
CONFORMANCE=${CONFORMANCE:-../shared/conformance} CLASS=${CLASS:-A} REPORT=${REPORT:-/tmp/kontiki-conformance} KONTIKI=${KONTIKI:-bin/kontiki}
for needed in "$CONFORMANCE/run" "$CONFORMANCE/tests.tsv" "${OUT:-$HOME/.cache/kontiki-conformance}/e2e.test" "$KONTIKI"; do
	[ -e "$needed" ] || { echo "conformance: $needed is missing (the suite is built by $CONFORMANCE/build, CONFORMANCE=DIR names another folder)" >&2; exit 2; }
done
mkdir -p "$REPORT"
data=$(mktemp -d /tmp/kconf.XXXXXX)
"$KONTIKI" dev --data-dir "$data" --node-runtime simulated --bind-address $address --node-ip $address --https-port 16443 \
	--client-port 0 --agent-port 20250 --node-name conformance --history-retention 2m >"$REPORT/kontiki.log" 2>&1 &
server=$!
trap 'kill $server; wait $server || true; rm -rf "$data"' EXIT
tries=0
until curl -sk https://$address:16443/readyz | grep -q ok; do
	tries=$((tries + 1))
	[ $tries -lt 120 ] || { echo "conformance: kontiki does not become ready, see $REPORT/kontiki.log" >&2; exit 1; }
	sleep 1
done
awk -F'\t' -v c="$CLASS" '$1==c{print $3}' "$CONFORMANCE/tests.tsv" | grep -vE "${SKIP:-^$}" >"$REPORT/names"
KUBECONFIG=$data/admin.kubeconfig NUMNODES=1 "$CONFORMANCE/run" "$REPORT/names" "$REPORT" ${FLAGS:-} 2>&1 | tee "$REPORT/log" |
	grep -E '^(•|Ran |PASS|FAIL)|\[FAIL\]' || true
grep -q '^PASS' "$REPORT/log"
