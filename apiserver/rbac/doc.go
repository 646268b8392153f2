// Package rbac decides what a user may do by the roles and bindings of the cluster, as Kubernetes' RBAC
// documentation describes it.
//
// A Policy is compiled from all roles and bindings and never changes; the server compiles another one when
// one of them changes. Who may do something is told by the first rule that says so: there are no rules that
// forbid, so their order is of no account.
//
//	policy.go     from objects to a Policy; Allow, RulesFor
//	rule.go       whether one rule allows one request
//	grant.go      nobody hands out what they lack: escalate, bind
//	defaults.go   the roles and bindings of every cluster (defaults.yaml)
//
// Invariants:
//   - A binding to a role that does not exist allows nothing, and hides nothing of what others allow.
//   - A RoleBinding allows things in its own namespace only, whatever its role says; paths that are no
//     resource are for ClusterRoleBindings.
//   - What a stored ClusterRole says in rules is all it allows: aggregation is done when roles are written,
//     by the loop in controllers, so a role that was just labelled opens nothing by itself.
//
// Read policy.go first.
package rbac
