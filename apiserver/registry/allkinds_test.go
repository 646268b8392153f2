package registry

import (
	"context"
	"encoding/json"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// Every kind survives its encodings: JSON, and the protobuf that it is stored and sent as.
func TestRoundTrips(t *testing.T) {
	table := Builtin(Options{})
	codecs := serializer.NewCodecFactory(table.Scheme())
	type message interface {
		Marshal() ([]byte, error)
		Unmarshal([]byte) error
	}
	for seed := range int64(10) {
		fill := fuzzer.FuzzerFor(randomFuncs, rand.NewSource(seed), codecs)
		for _, r := range table.Resources() {
			obj := r.New()
			fill.Fill(obj)
			text, err := json.Marshal(obj)
			require.NoError(t, err)
			back := r.New()
			require.NoError(t, json.Unmarshal(text, back), r.Resource)
			again, err := json.Marshal(back)
			require.NoError(t, err)
			require.JSONEq(t, string(text), string(again), r.Resource)

			data, err := back.(message).Marshal()
			require.NoError(t, err)
			stored := r.New()
			require.NoError(t, stored.(message).Unmarshal(data), r.Resource)
			require.True(t, apiequality.Semantic.DeepEqual(withoutKind(back), withoutKind(stored)), "%s, seed %d", r.Resource, seed)
		}
	}
}

// What the kinds of this file's groups refuse, with the path and the type of the cause.
func TestValidateNewKinds(t *testing.T) {
	const (
		admission = "admissionregistration.k8s.io"
		flow      = "flowcontrol.apiserver.k8s.io"
		dnsRule   = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
	)
	for _, c := range []struct {
		name     string
		resource schema.GroupVersionResource
		body     string
		want     []string
	}{
		{"a good webhook", in(admission, "validatingwebhookconfigurations"), `{"webhooks":[{"name":"a.b.c","sideEffects":"None","admissionReviewVersions":["v1"],
			"clientConfig":{"service":{"namespace":"n","name":"s","path":"/check"}},"rules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods","pods/*"]}]}]}`, []string{}},
		{"a bad webhook", in(admission, "mutatingwebhookconfigurations"), `{"webhooks":[{"name":"a","timeoutSeconds":31,"clientConfig":{"url":"http://x"},
			"rules":[{"operations":["*","CREATE"],"apiGroups":["*","x"],"apiVersions":["v1"],"resources":["*/*","pods"],"scope":"x"}]}]}`, []string{
			"webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
			"webhooks[0].clientConfig.url: Invalid value: 'https' is the only allowed URL scheme; desired format: https://host[/path]",
			"webhooks[0].name: Invalid value: should be a domain with at least three segments separated by dots",
			"webhooks[0].rules[0].apiGroups: Invalid value: if '*' is present, must not specify other API groups",
			"webhooks[0].rules[0].operations: Invalid value: if '*' is present, must not specify other operations",
			"webhooks[0].rules[0].resources: Invalid value: if '*/*' is present, must not specify other resources",
			`webhooks[0].rules[0].scope: Unsupported value: supported values: "*", "Cluster", "Namespaced"`,
			"webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
			"webhooks[0].timeoutSeconds: Invalid value: the timeout value must be between 1 and 30 seconds"}},
		{"a policy", in(admission, "validatingadmissionpolicies"), `{"spec":{"validations":[{"expression":" "}]}}`, []string{
			"spec.matchConstraints: Required value", "spec.validations[0].expression: Required value: expression is not specified"}},
		{"a policy's binding", in(admission, "validatingadmissionpolicybindings"), `{"spec":{"policyName":"p","paramRef":{},"validationActions":["Deny","Warn"]}}`, []string{
			"spec.paramRef.parameterNotFoundAction: Required value",
			"spec.paramRef: Required value: one of name or selector must be specified",
			"spec.validationActions: Invalid value: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"}},
		{"a flow schema", in(flow, "flowschemas"), `{"spec":{"matchingPrecedence":1,"rules":[{"subjects":[{"kind":"User","group":{"name":"g"}}],"resourceRules":[{"verbs":["*","get"],"apiGroups":[""],"resources":["pods"]}]}]}}`, []string{
			"spec.matchingPrecedence: Invalid value: only the schema named 'exempt' may have matchingPrecedence 1",
			"spec.priorityLevelConfiguration.name: Required value: must reference a priority level",
			"spec.rules[0].resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace",
			"spec.rules[0].resourceRules[0].verbs: Invalid value: if '*' is present, must not specify other verbs",
			"spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
			"spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'"}},
		{"a priority level", in(flow, "prioritylevelconfigurations"), `{"metadata":{"name":"x"},"spec":{"type":"Limited","limited":{"lendablePercent":101,"limitResponse":{"type":"Queue","queuing":{"queues":4}}}}}`, []string{
			"spec.limited.lendablePercent: Invalid value: must be between 0 and 100, inclusive",
			"spec.limited.limitResponse.queuing.handSize: Invalid value: should not be greater than queues (4)"}},
		{"a signing request", in("certificates.k8s.io", "certificatesigningrequests"), `{"spec":{"signerName":"x","usages":["x"],"expirationSeconds":5}}`, []string{
			"spec.expirationSeconds: Invalid value: may not specify a duration less than 600 seconds (10 minutes)",
			"spec.request: Invalid value: PEM block type must be CERTIFICATE REQUEST",
			"spec.signerName: Invalid value: must be a fully qualified domain and path of the form 'example.com/signer-name'",
			`spec.usages[0]: Unsupported value: supported values: "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment", "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "server auth", "s/mime", "signing", "timestamping"`}},
		{"an address", in("networking.k8s.io", "ipaddresses"), `{"metadata":{"name":"10.0.0.1"},"spec":{"parentRef":{"name":"s"}}}`, []string{"spec.parentRef.resource: Required value"}},
		{"a migration", in("storagemigration.k8s.io", "storageversionmigrations"), `{"spec":{"resource":{"group":"A"}}}`, []string{
			"spec.resource.group: Invalid value: " + dnsRule, "spec.resource.resource: Required value: resource is required to be set"}},
		{"an attributes class", in("storage.k8s.io", "volumeattributesclasses"), `{}`, []string{
			"driverName: Required value", "parameters: Required value: must contain at least one key/value pair"}},
		{"hosts of an ingress", in("networking.k8s.io", "ingresses"), `{"spec":{"rules":[{"host":"1.2.3.4"},{"host":"*.a.*"}],"tls":[{"hosts":["A"]}]}}`, []string{
			"spec.rules[0].host: Invalid value: must be a DNS name, not an IP address",
			"spec.rules[1].host: Invalid value: a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
			"spec.tls[0].hosts[0]: Invalid value: " + dnsRule}},
		{"limits out of order", core("limitranges"), `{"spec":{"limits":[{"type":"Container","min":{"cpu":"2"},"max":{"cpu":"1"}},{"type":"PersistentVolumeClaim"}]}}`, []string{
			"spec.limits[0].defaultRequest[cpu]: Invalid value: min value 2 is greater than default request value 1",
			"spec.limits[0].default[cpu]: Invalid value: min value 2 is greater than default value 1",
			"spec.limits[0].min[cpu]: Invalid value: min value 2 is greater than max value 1",
			"spec.limits[1].limits: Required value: either minimum or maximum storage value is required, but neither was provided"}},
		{"a metric without its part", in("autoscaling", "horizontalpodautoscalers"), `{"spec":{"maxReplicas":1,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"D","name":"d"},"metrics":[{"type":"Pods","resource":{"name":"cpu","target":{"type":"Utilization"}}}]}}`, []string{
			"spec.metrics[0].pods: Required value: must populate information for the given metric source",
			"spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization",
			"spec.metrics[0].resource: Forbidden: must populate the given metric source only"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := Builtin(Options{})
			obj := decoded(t, table, c.resource, c.body)
			require.Equal(t, c.want, faultsOf(table.Lookup(c.resource).Strategy.Validate(context.Background(), obj)))
		})
	}
}

func TestSchedules(t *testing.T) {
	for text, good := range map[string]bool{"*/5 * * * *": true, "@daily": true, "* * * *": false, "61 * * * *": false, "TZ=0": false} {
		require.Equal(t, good, parseSchedule(text) == nil, text)
	}
	for name, good := range map[string]bool{"Europe/Berlin": true, "Etc/UTC": true, "Local": false, "../etc/passwd": false, "": false, "Nowhere": false} {
		require.Equal(t, good, len(timeZone(specPath, name)) == 0, name)
	}
}

func TestCountIndexes(t *testing.T) {
	for text, want := range map[string]int32{"": 0, "0": 1, "0,2-4": 4} {
		n, err := countIndexes(text, 5)
		require.NoError(t, err, text)
		require.Equal(t, want, n, text)
	}
	for _, text := range []string{"5", "2,1", "3-2", "a", "1,", "1-"} {
		_, err := countIndexes(text, 5)
		require.Error(t, err, text)
	}
}
