#!/bin/sh
# What `make run` does after building: starts one node, runs examples/hello.yaml on it, shows it, and
# stays until Ctrl-C (or SIGTERM). Arguments go to `kontiki dev`.
set -u
cd "$(dirname "$0")/.."

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

# Containers need root. Whoever may become root without being asked does; others get simulated pods.
as_root=
if [ "$(id -u)" != 0 ] && sudo -n true 2>/dev/null; then as_root=sudo; fi
kontiki="$as_root $PWD/bin/kontiki"
data=${KONTIKI_DATA_DIR:-$PWD/.kontiki}

mkdir -p -m 700 "$data" 2>/dev/null
log=$data/dev.log
: >"$log"
$kontiki dev --data-dir "$data" "$@" 2>"$log" &
node=$!

# Ctrl-C reaches the node as well, from the terminal; a second one ends it at once. SIGTERM does not.
stop() {
	trap '' TERM
	[ "$1" = TERM ] && kill -TERM $node 2>/dev/null
	wait $node
	code=$?
	[ $code = 0 ] || { echo; tail -n 3 "$log"; }
	exit $code
}
trap 'stop INT' INT
trap 'stop TERM' TERM HUP

# until COMMAND: tries until it works; gives up when the node has ended, or after a minute.
until_ok() {
	tries=0
	until "$@" >/dev/null 2>&1; do
		kill -0 $node 2>/dev/null || { tail -n 3 "$log" >&2; wait $node; exit 1; }
		tries=$((tries + 1))
		[ $tries -lt 300 ] || { echo "not ready after a minute; the log is $log" >&2; stop TERM; }
		sleep 0.2
	done
}

kubectl() { $kontiki kubectl --kubeconfig "$data/admin.kubeconfig" "$@"; }

until_ok kubectl get --raw /readyz
until_ok kubectl wait --for=condition=Ready node --all --timeout=1s
until_ok kubectl get serviceaccount default

say '$ kubectl apply -f examples/hello.yaml'
kubectl apply -f examples/hello.yaml
say '$ kubectl rollout status deployment/hello'
kubectl rollout status deployment/hello --timeout=120s || kubectl describe pods -l app=hello
say '$ kubectl get nodes -o wide'
kubectl get nodes -o wide
say '$ kubectl get deployments,services,pods -o wide'
kubectl get deployments,services,pods -o wide

address=$(kubectl get pods -l app=hello -o 'jsonpath={.items[0].status.podIP}')
say "\$ curl http://$address:8080/"
case $(kubectl get nodes -o 'jsonpath={.items[0].status.nodeInfo.containerRuntimeVersion}') in
simulated:*) echo "(not tried: simulated pods only exist as status, nothing answers there)" ;;
*) curl --silent --show-error --max-time 5 --retry 5 --retry-connrefused --retry-delay 1 "http://$address:8080/" ;;
esac

say 'From another terminal:'
cat <<END
  export KUBECONFIG=$data/admin.kubeconfig
  kubectl get pods -w          # any kubectl, or: bin/kontiki kubectl get pods -w
  kubectl scale deployment hello --replicas=5
The node's log is $log. Ctrl-C stops the node and its containers; the data stays in $data.
END
wait $node
stop INT
