#!/bin/sh
# The API loads of the bench on a Kontiki and on a kube-apiserver with an etcd, in turns: figures of the same minute.
# usage: sh .ci/bench-api.sh KONTIKI BENCH KUBE-APISERVER [LOADS]     (programs, etcdmember beside bench; LOADS as for bench -api)
set -eu
kontiki=$(realpath "$1") bench=$(realpath "$2") apiserver=$(realpath "$3") loads=${4:-}
dir=$(mktemp -d)
pids=
finish() { for p in $pids; do kill "$p" 2>/dev/null || true; done; wait; rm -rf "$dir"; }
trap finish EXIT INT TERM
cd "$dir"

ready() { # URL: waits, at most 60 s
	i=0
	while [ $i -lt 800 ]; do
		curl -skf "$1/readyz" >/dev/null && return
		sleep 0.02
		i=$((i + 1))
	done
	echo "$1 does not become ready" >&2
	tail -n 5 ./*.log >&2
	exit 1
}
millis() { echo $(($(date +%s%N) / 1000000)); }
memory() { for p in $2; do awk -v w="$1" -v p="$p" '/VmRSS|RssAnon/ {printf "%s (process %s) %s %d MiB\n", w, p, $1, $2 / 1024}' "/proc/$p/status"; done; }
ticks() { t=0; for p in $1; do t=$((t + $(awk '{print $14+$15}' "/proc/$p/stat"))); done; echo "$t"; }

began=$(millis)
"$kontiki" server --data-dir "$dir/k" --agent=false --https-port 16443 --client-port 0 --peer-port 0 --bind-address 127.0.0.1 --log-level error 2>k.log &
k=$! pids=$!
ready https://127.0.0.1:16443
echo "kontiki: start to /readyz $(($(millis) - began)) ms"

openssl genrsa -out tokens.key 2048 2>/dev/null
mkfifo stdin
mkdir e
began=$(millis)
"$(dirname "$bench")/etcdmember" member '{"System":"etcd","Dir":"'"$dir"'/e","Index":0,"Client":["127.0.0.1:12379"],"Peer":["127.0.0.1:12380"]}' <stdin >/dev/null 2>e.log &
e=$! pids="$pids $!"
exec 9>stdin # as long as it is open the etcd runs
"$apiserver" --etcd-servers=http://127.0.0.1:12379 --cert-dir="$dir/cert" --bind-address=127.0.0.1 --secure-port=16444 \
	--client-ca-file="$dir/k/pki/ca.crt" --service-cluster-ip-range=10.96.0.0/16 --service-account-issuer=https://kubernetes.default.svc \
	--service-account-key-file=tokens.key --service-account-signing-key-file=tokens.key --authorization-mode=RBAC \
	--disable-admission-plugins=ServiceAccount --allow-privileged=true --endpoint-reconciler-type=none >u.log 2>&1 &
u=$! pids="$pids $!"
ready https://127.0.0.1:16444
echo "kube-apiserver and etcd: start to /readyz $(($(millis) - began)) ms"
sed -e 's|server: .*|server: https://127.0.0.1:16444\n    insecure-skip-tls-verify: true|' -e '/certificate-authority-data/d' k/admin.kubeconfig >upstream.kubeconfig

sleep 5
memory "idle: kontiki" $k
memory "idle: kube-apiserver, etcd" "$u $e"
a=$(ticks "$k") b=$(ticks "$u $e")
sleep 10
echo "idle, hundredths of a core: kontiki 0.$(($(ticks "$k") - a)) %, kube-apiserver and etcd 0.$(($(ticks "$u $e") - b)) %" | sed 's/0\.\([0-9]*\)\([0-9]\) %/\1.\2 %/g'
for load in $(echo "${loads:-create,update,increment,get,list,watch,watchmax}" | tr , ' '); do
	echo "--- $load: kontiki"
	"$bench" -kubeconfig k/admin.kubeconfig -api "$load" -time "${TIME:-2s}"
	echo "--- $load: kube-apiserver and etcd"
	"$bench" -kubeconfig upstream.kubeconfig -api "$load" -time "${TIME:-2s}"
done
memory "after: kontiki" $k
memory "after: kube-apiserver, etcd" "$u $e"
