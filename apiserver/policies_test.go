package apiserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	registration   = "/apis/admissionregistration.k8s.io/v1/"
	policiesPath   = registration + "validatingadmissionpolicies"
	bindingsPath   = registration + "validatingadmissionpolicybindings"
	mutationsPath  = registration + "mutatingadmissionpolicies"
	mutatorsPath   = registration + "mutatingadmissionpolicybindings"
	onConfigMaps   = `"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE","UPDATE"],"resources":["configmaps"]}]}`
	onMapsWithData = onConfigMaps + `,"matchConditions":[{"name":"data","expression":"has(object.data)"}]`
)

// policy posts a validating policy for ConfigMaps and a binding of the same name, both with more in their specs.
func (c *client) policy(name, spec, binding string) {
	c.t.Helper()
	c.post(policiesPath, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{%s,%s}}`, name, onMapsWithData, spec)).ok()
	if binding != "" {
		c.post(bindingsPath, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"policyName":%q,%s}}`, name+"-binding", name, binding)).ok()
	}
}

// mutation does the same with a mutating policy.
func (c *client) mutation(name, spec string) {
	c.t.Helper()
	c.post(mutationsPath, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{%s,%s}}`, name, onMapsWithData, spec)).ok()
	c.post(mutatorsPath, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"policyName":%q}}`, name+"-binding", name)).ok()
}

// tryMap creates a ConfigMap of the name in a dry run.
func (c *client) tryMap(name string) answer {
	return c.post(maps+"?dryRun=All", configMap(name, `"labels":{"l":"`+name+`"}`))
}

// refused waits until a ConfigMap of the name is, since policies are followed.
func (c *client) refused(name string) answer {
	c.t.Helper()
	var out answer
	c.until(func() bool { out = c.tryMap(name); return out.code != 201 })
	return out
}

func TestValidatingPolicies(t *testing.T) {
	_, c := start(t)
	const deny = `"validationActions":["Deny"]`
	c.policy("plain", `"validations":[{"expression":"object.metadata.name != 'plain'"}]`, deny)
	c.policy("words", `"variables":[{"name":"who","expression":"object.metadata.name"}],
		"validations":[{"expression":"variables.who != 'words'","messageExpression":"'no ' + variables.who + ' here'","message":"unused","reason":"Forbidden"}]`, deny)
	c.policy("message", `"validations":[{"expression":"object.metadata.name != 'message'","messageExpression":"'a\\nb'","message":"said so"}]`, deny)
	c.policy("namespace", `"validations":[{"expression":"object.metadata.name != 'namespace' || namespaceObject.metadata.name != 'default'","message":"not in default"}]`, deny)
	c.policy("access", `"validations":[{"expression":"object.metadata.name != 'access' || !authorizer.group('').resource('pods').namespace('default').check('delete').allowed()","message":"too powerful"}]`, deny)
	c.policy("error", `"validations":[{"expression":"object.metadata.name != 'error' || object.data.nothing == 'x'"}]`, deny)
	c.policy("expensive", `"matchConditions":[{"name":"n","expression":"object.metadata.name == 'expensive'"}],"validations":[{"expression":"[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))"}]`, deny)
	c.policy("ignore", `"failurePolicy":"Ignore","validations":[{"expression":"object.metadata.name != 'error' || object.data.nothing == 'y'"},{"expression":"object.metadata.name != 'ignore'"}]`, deny)

	for name, want := range map[string]struct {
		code   int
		reason metav1.StatusReason
		text   string
	}{
		"plain":     {422, "Invalid", `configmaps "plain" is forbidden: ValidatingAdmissionPolicy 'plain' with binding 'plain-binding' denied request: failed expression: object.metadata.name != 'plain'`},
		"words":     {403, "Forbidden", `configmaps "words" is forbidden: ValidatingAdmissionPolicy 'words' with binding 'words-binding' denied request: no words here`},
		"message":   {422, "Invalid", `denied request: said so`},
		"namespace": {422, "Invalid", `denied request: not in default`},
		"access":    {422, "Invalid", `denied request: too powerful`},
		"error":     {422, "Invalid", `ValidatingAdmissionPolicy 'error' with binding 'error-binding' denied request: expression 'object.metadata.name != 'error' || object.data.nothing == 'x'' resulted in error: no such key: nothing`},
		"expensive": {422, "Invalid", `operation cancelled: actual cost limit exceeded`},
		"ignore":    {422, "Invalid", `ValidatingAdmissionPolicy 'ignore' with binding 'ignore-binding' denied request: failed expression`},
	} {
		c.refused(name).fails(want.code, want.reason, want.text)
	}
	c.tryMap("fine").ok()
	require.Len(t, c.tryMap("plain").status().Details.Causes, 1)

	// A change is in use, and so is the end of one.
	c.patch(policiesPath+"/plain", mergePatch, `{"spec":{"validations":[{"expression":"object.metadata.name != 'changed'"}]}}`).ok()
	c.refused("changed").fails(422, "Invalid", "denied request")
	c.tryMap("plain").ok()
	c.delete(bindingsPath+"/plain-binding", "").ok()
	c.until(func() bool { return c.tryMap("changed").code == 201 })
}

// What a binding says is to be done: nothing is refused without Deny.
func TestValidationActions(t *testing.T) {
	_, c := start(t)
	c.policy("warn", `"validations":[{"expression":"object.metadata.name != 'w'","message":"beware"}]`, `"validationActions":["Warn","Audit"]`)
	c.until(func() bool { return len(c.tryMap("w").header["Warning"]) > 0 })
	warned := c.tryMap("w").ok()
	require.Equal(t, []string{`299 - "Validation failed for ValidatingAdmissionPolicy 'warn' with binding 'warn-binding': beware"`}, warned.header["Warning"])
	c.post(bindingsPath, `{"metadata":{"name":"both"},"spec":{"policyName":"warn","validationActions":["Deny","Warn"]}}`).fails(422, "Invalid", "must not contain both Deny and Warn")
}

// Parameters by name and by label, in the request's namespace or in a fixed one, and what their absence means.
func TestPolicyParams(t *testing.T) {
	_, c := start(t)
	c.post("/api/v1/namespaces", `{"metadata":{"name":"params"}}`).ok()
	limit := func(namespace, name, value string) {
		c.post("/api/v1/namespaces/"+namespace+"/configmaps", fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"limit":"yes"}},"data":{"bad":%q}}`, name, value)).ok()
	}
	limit("params", "one", "a")
	limit("params", "two", "b")
	const spec = `"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"validations":[{"expression":"params == null || object.metadata.name != params.data.bad","messageExpression":"params.kind + ' ' + params.metadata.name"}]`
	bind := func(ref string) string {
		return `"validationActions":["Deny"],"paramRef":{"parameterNotFoundAction":"Deny",` + ref + `}`
	}
	c.policy("named", spec, bind(`"name":"one","namespace":"params"`))
	c.refused("a").fails(422, "Invalid", "denied request: ConfigMap one")
	c.tryMap("b").ok()
	c.patch(bindingsPath+"/named-binding", mergePatch, `{"spec":{"paramRef":{"name":null,"selector":{"matchLabels":{"limit":"yes"}}}}}`).ok()
	c.refused("b").fails(422, "Invalid", "denied request: ConfigMap two")
	c.tryMap("a").fails(422, "Invalid", "denied request: ConfigMap one")
	c.tryMap("c").ok()

	c.patch(bindingsPath+"/named-binding", mergePatch, `{"spec":{"paramRef":{"namespace":null}}}`).ok()
	c.refused("c").fails(422, "Invalid", "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction")
	c.patch(bindingsPath+"/named-binding", mergePatch, `{"spec":{"paramRef":{"parameterNotFoundAction":"Allow"}}}`).ok()
	c.until(func() bool { return c.tryMap("c").code == 201 })

	c.policy("unknown", `"paramKind":{"apiVersion":"example.com/v1","kind":"Nothing"},"validations":[{"expression":"true"}]`, bind(`"name":"x"`))
	c.refused("c").fails(422, "Invalid", "ValidatingAdmissionPolicy 'unknown' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=Nothing'")
}

func TestMutatingPolicies(t *testing.T) {
	_, c := start(t)
	const apply, patch = `"reinvocationPolicy":"Never","mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":%q}}]`, `"reinvocationPolicy":"%s","mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":%q}}]`
	c.mutation("a", fmt.Sprintf(apply, `Object{data: {"applied": string(size(object.data))}, metadata: Object.metadata{labels: {"by": request.userInfo.username}}}`))
	c.mutation("b", fmt.Sprintf(patch, "IfNeeded", `[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("example.com/patched"), value: "applied" in object.data ? "after-" + object.data.applied : "first"}]`))
	// It changes the object after b, which is asked again then.
	c.mutation("c", fmt.Sprintf(patch, "Never", `"applied" in object.data ? [JSONPatch{op: "replace", path: "/data/applied", value: "9"}] : []`))
	want := map[string]any{"k": "v", "applied": "9"}
	var got answer
	c.until(func() bool {
		got = c.tryMap("m")
		return got.code == 201 && fmt.Sprint(got.object().Object["data"]) == fmt.Sprint(want)
	})
	require.Equal(t, map[string]string{"by": "kubernetes-admin", "l": "m", "example.com/patched": "after-9"}, got.object().GetLabels())

	c.mutation("d", fmt.Sprintf(patch, "Never", `object.metadata.name == "broken" ? [JSONPatch{op: "remove", path: "/data/absent"}] : []`))
	c.refused("broken").fails(403, "Invalid", "policy 'd' with binding 'd-binding' denied request: JSON Patch: error in remove for path: '/data/absent'")
	c.mutation("e", `"failurePolicy":"Ignore",`+fmt.Sprintf(apply, `Object{data: {"x": object.data.absent}}`))
	c.tryMap("fine").ok()
}

// The objects of other resources, and other versions of one, are mutated through their own types.
func TestMutatingPolicyOfVersions(t *testing.T) {
	_, c := start(t)
	spec := func(group, version, resource, expression string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"reinvocationPolicy":"Never","matchConstraints":{"resourceRules":[{"apiGroups":[%q],"apiVersions":[%q],"operations":["CREATE"],"resources":[%q]}]},
			"mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":%q}}]}}`, resource, group, version, resource, expression)
	}
	c.post(mutationsPath, spec("autoscaling", "v2", "horizontalpodautoscalers", `Object{spec: Object.spec{minReplicas: 2}}`)).ok()
	c.post(mutationsPath, spec("apps", "v1", "deployments", `Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: "side", image: "side"}]}}}}`)).ok()
	for _, name := range []string{"horizontalpodautoscalers", "deployments"} {
		c.post(mutatorsPath, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"policyName":%q}}`, name, name)).ok()
	}
	scaler := `{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}}`
	c.until(func() bool {
		got := c.post("/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers?dryRun=All", scaler).ok().object()
		return fmt.Sprint(got.Object["spec"].(map[string]any)["minReplicas"]) == "2"
	})
	// Each container has the defaults, also the one that the policy added.
	c.until(func() bool {
		got := c.post("/apis/apps/v1/namespaces/default/deployments?dryRun=All", deployment("d", "")).ok()
		return strings.Count(string(got.body), `"terminationMessagePath"`) == 2
	})
}

// So are custom resources, by the schema of their definition.
func TestMutatingPolicyOfCustomResources(t *testing.T) {
	_, c := start(t)
	c.post(definitionsPath, boatDefinition("", `"masts":{"type":"integer"},"captain":{"type":"string"}`)).ok()
	group, version, _ := strings.Cut(strings.TrimPrefix(boats, "/apis/"), "/")
	version, _, _ = strings.Cut(version, "/")
	c.post(mutationsPath, fmt.Sprintf(`{"metadata":{"name":"rig"},"spec":{"reinvocationPolicy":"Never","matchConstraints":{"resourceRules":[{"apiGroups":[%q],"apiVersions":[%q],"operations":["CREATE"],"resources":["boats"]}]},
		"mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object{spec: Object.spec{masts: 2}}"}}]}}`, group, version)).ok()
	c.post(mutatorsPath, `{"metadata":{"name":"rig"},"spec":{"policyName":"rig"}}`).ok()
	c.until(func() bool {
		got := c.post(boats+"?dryRun=All", boat("b", `,"spec":{"captain":"Thor"}`)).ok().object()
		return fmt.Sprint(got.Object["spec"]) == "map[captain:Thor masts:2]"
	})
}

// Expressions that do not compile are refused when the policy is written, in Kubernetes' words.
func TestExpressionsMustCompile(t *testing.T) {
	_, c := start(t)
	bad := func(spec string) answer {
		return c.post(policiesPath, fmt.Sprintf(`{"metadata":{"name":"p"},"spec":{%s,%s}}`, onConfigMaps, spec))
	}
	bad(`"validations":[{"expression":"object.metadata.name + 1 >"}]`).fails(422, "Invalid", "spec.validations[0].expression: Invalid value: \"object.metadata.name + 1 >\": compilation failed: ERROR: <input>:1:27: Syntax error")
	bad(`"validations":[{"expression":"'text'"}]`).fails(422, "Invalid", "must evaluate to bool but got string")
	bad(`"validations":[{"expression":"params.x == 1"}]`).fails(422, "Invalid", "undeclared reference to 'params'")
	bad(`"validations":[{"expression":"true","messageExpression":"authorizer.path('/x').check('get').reason()"}]`).fails(422, "Invalid", "undeclared reference to 'authorizer'")
	bad(`"variables":[{"name":"true","expression":"1"}],"validations":[{"expression":"true"}]`).fails(422, "Invalid", "spec.variables[0].name: Invalid value: \"true\": must be a valid CEL identifier")
	bad(`"variables":[{"name":"x","expression":"variables.y"}],"validations":[{"expression":"true"}]`).fails(422, "Invalid", "undefined field 'y'")
	bad(`"validations":[{"expression":"true"}],"auditAnnotations":[{"key":"k","valueExpression":"1"}]`).fails(422, "Invalid", "must evaluate to one of [string null_type] but got int")
	c.post(mutationsPath, fmt.Sprintf(`{"metadata":{"name":"p"},"spec":{%s,"reinvocationPolicy":"Never","mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"Object{}"}}]}}`, onConfigMaps)).fails(422, "Invalid", "must evaluate to list(JSONPatch) but got Object")
	c.post(validatingPath, `{"metadata":{"name":"v"},"webhooks":[{"name":"v.test.example","sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1/"},"matchConditions":[{"name":"c","expression":"params == null"}]}]}`).
		fails(422, "Invalid", "webhooks[0].matchConditions[0].expression: Invalid value: \"params == null\": compilation failed")
}
