package audit_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	authenticationv1 "k8s.io/api/authentication/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"kontiki/apiserver/audit"
)

const header = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"

// TestPolicyDecides asks each rule about a request that it means, and about one that it just does not.
func TestPolicyDecides(t *testing.T) {
	pods := audit.Request{Verb: "get", Path: "/api/v1/namespaces/a/pods/p", Version: "v1", Resource: "pods", Namespace: "a", Name: "p",
		User: authenticationv1.UserInfo{Username: "jane", Groups: []string{"dev", "ops"}}}
	logs := pods
	logs.Subresource = "log"
	deployments := audit.Request{Verb: "list", Group: "apps", Version: "v1", Resource: "deployments"}
	health := audit.Request{Verb: "get", Path: "/healthz/etcd"}

	for name, c := range map[string]struct {
		rule     string
		yes, not []audit.Request
	}{
		"user":                   {`users: [jane]`, []audit.Request{pods}, []audit.Request{health}},
		"group":                  {`userGroups: [x, ops]`, []audit.Request{pods}, []audit.Request{health}},
		"verb":                   {`verbs: [list]`, []audit.Request{deployments}, []audit.Request{pods}},
		"everything":             {`verbs: []`, []audit.Request{pods, logs, deployments, health}, nil},
		"core group":             {`resources: [{group: ""}]`, []audit.Request{pods, logs}, []audit.Request{deployments, health}},
		"any group":              {`resources: [{group: "*"}]`, []audit.Request{pods, deployments}, []audit.Request{health}},
		"resource":               {`resources: [{resources: [pods]}]`, []audit.Request{pods}, []audit.Request{logs, deployments}},
		"subresource":            {`resources: [{resources: [pods/log]}]`, []audit.Request{logs}, []audit.Request{pods}},
		"subresources":           {`resources: [{resources: ["pods/*"]}]`, []audit.Request{logs, pods}, []audit.Request{deployments}},
		"subresource of any":     {`resources: [{resources: ["*/log"]}]`, []audit.Request{logs}, []audit.Request{pods}},
		"any resource":           {`resources: [{resources: ["*"]}]`, []audit.Request{logs, pods}, []audit.Request{deployments}},
		"name":                   {`resources: [{resources: [pods], resourceNames: [p]}]`, []audit.Request{pods}, []audit.Request{deployments}},
		"other name":             {`resources: [{resources: [pods], resourceNames: [q]}]`, nil, []audit.Request{pods}},
		"namespace":              {`namespaces: [a]`, []audit.Request{pods}, []audit.Request{deployments, health}},
		"no namespace":           {`namespaces: [""]`, []audit.Request{deployments}, []audit.Request{pods, health}},
		"path":                   {`nonResourceURLs: [/healthz/etcd]`, []audit.Request{health}, []audit.Request{pods}},
		"paths":                  {`nonResourceURLs: ["/healthz*"]`, []audit.Request{health}, []audit.Request{pods}},
		"any path":               {`nonResourceURLs: ["*"]`, []audit.Request{health}, []audit.Request{pods}},
		"all conditions":         {`{users: [jane], verbs: [get], namespaces: [a], resources: [{resources: [pods]}]}`, []audit.Request{pods}, []audit.Request{logs}},
		"one condition does not": {`{users: [jane], verbs: [list], namespaces: [a]}`, nil, []audit.Request{pods}},
	} {
		t.Run(name, func(t *testing.T) {
			rule := c.rule
			if rule[0] != '{' {
				rule = "{" + rule + "}"
			}
			policy, err := audit.ParsePolicy([]byte(header + "rules: [{level: Request, " + rule[1:] + "]"))
			require.NoError(t, err)
			for _, q := range c.yes {
				require.Equal(t, auditv1.LevelRequest, policy.Decide(&q).Level, "%+v", q)
			}
			for _, q := range c.not {
				require.Equal(t, auditv1.LevelNone, policy.Decide(&q).Level, "%+v", q)
			}
		})
	}
}

func TestFirstRuleWins(t *testing.T) {
	policy, err := audit.ParsePolicy([]byte(header + `
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: None, verbs: [get]}
- {level: Metadata, verbs: [list], omitStages: [Panic], omitManagedFields: false}
- {level: RequestResponse}
`))
	require.NoError(t, err)
	require.Equal(t, auditv1.LevelNone, policy.Decide(&audit.Request{Verb: "get"}).Level)
	require.Equal(t, audit.Decision{Level: auditv1.LevelMetadata, OmitStages: []auditv1.Stage{"RequestReceived", "Panic"}}, policy.Decide(&audit.Request{Verb: "list"}))
	require.Equal(t, audit.Decision{Level: auditv1.LevelRequestResponse, OmitStages: []auditv1.Stage{"RequestReceived"}, OmitManagedFields: true},
		policy.Decide(&audit.Request{Verb: "create"}))
}

func TestDefaultPolicy(t *testing.T) {
	policy := audit.DefaultPolicy()
	lease := audit.Request{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", User: authenticationv1.UserInfo{Username: "system:node:a", Groups: []string{"system:nodes"}}}
	require.Equal(t, auditv1.LevelNone, policy.Decide(&lease).Level)
	lease.User = authenticationv1.UserInfo{Username: "jane"}
	require.Equal(t, auditv1.LevelMetadata, policy.Decide(&lease).Level)
	require.Equal(t, auditv1.LevelMetadata, policy.Decide(&audit.Request{Verb: "get", Resource: "secrets"}).Level)
	require.Equal(t, auditv1.LevelMetadata, policy.Decide(&audit.Request{Verb: "get", Path: "/debug"}).Level)
	require.Equal(t, auditv1.LevelNone, policy.Decide(&audit.Request{Verb: "get", Path: "/livez"}).Level)
}

func TestPolicyFaults(t *testing.T) {
	for name, c := range map[string]struct{ policy, says string }{
		"empty":           {"", "apiVersion"},
		"not YAML":        {"a: [", "yaml"},
		"another kind":    {"apiVersion: v1\nkind: Pod\n", "kind: Policy"},
		"old version":     {"apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]", "audit.k8s.io/v1"},
		"no rules":        {header, "no rules"},
		"unknown field":   {header + "rules: [{level: None, user: [x]}]", `unknown field "rules[0].user"`},
		"no level":        {header + "rules: [{verbs: [get]}]", "rules[0].level"},
		"unknown level":   {header + "rules: [{level: Everything}]", `supported values: "None", "Metadata", "Request", "RequestResponse"`},
		"unknown stage":   {header + "omitStages: [Late]\nrules: [{level: None}]", "omitStages[0]"},
		"stage of a rule": {header + "rules: [{level: None, omitStages: [Late]}]", "rules[0].omitStages[0]"},
		"relative URL":    {header + "rules: [{level: None, nonResourceURLs: [healthz]}]", "must begin with /"},
		"star inside":     {header + "rules: [{level: None, nonResourceURLs: ['/a*/b']}]", "last character"},
		"both":            {header + "rules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]", "not for both"},
		"group version":   {header + "rules: [{level: None, resources: [{group: apps/v1}]}]", "rules[0].resources[0].group"},
		"names of what":   {header + "rules: [{level: None, resources: [{group: apps, resourceNames: [a]}]}]", "resourceNames"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "policy.yaml")
			require.NoError(t, os.WriteFile(path, []byte(c.policy), 0o600))
			_, err := audit.LoadPolicy(path)
			require.ErrorIs(t, err, audit.ErrPolicy)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, path)
			require.NotContains(t, err.Error(), "\n", "a line")
		})
	}
	_, err := audit.LoadPolicy(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte(header + "rules: [{level: Metadata, resources: [{group: a, resources: ['*/x']}]}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		policy, err := audit.ParsePolicy(data)
		if err != nil {
			require.ErrorIs(t, err, audit.ErrPolicy)
			return
		}
		policy.Decide(&audit.Request{Verb: "get", Path: "/a", Resource: "pods", Subresource: "log"})
	})
}
