package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	hooks "k8s.io/apiserver/pkg/util/webhook"
)

// Names of resources, and names of kinds, are of one definition in a group each. In Kubernetes a controller accepts
// them some time after a definition was written. Here they are claims, as cluster IPs are: the write that asks for
// names also takes those that are free, in one transaction, and says in the conditions what it got. So whichever
// server is asked, two definitions never have one name, and a definition is established when its create is answered.

const (
	claimedResources = "/kontiki/claims/customresources/%s/resources/%s"
	claimedKinds     = "/kontiki/claims/customresources/%s/kinds/%s"
)

// definitionClaims are the accepted names.
func definitionClaims(obj runtime.Object) []string {
	d := obj.(*apiextensionsv1.CustomResourceDefinition)
	names, group := d.Status.AcceptedNames, d.Spec.Group
	var claims []string
	for _, name := range append([]string{names.Plural, names.Singular}, names.ShortNames...) {
		claims = append(claims, fmt.Sprintf(claimedResources, group, name))
	}
	for _, name := range []string{names.Kind, names.ListKind} {
		claims = append(claims, fmt.Sprintf(claimedKinds, group, name))
	}
	// A singular may be the plural, and of a definition without names nothing is left.
	slices.Sort(claims)
	return slices.DeleteFunc(slices.Compact(claims), func(claim string) bool { return strings.HasSuffix(claim, "/") })
}

// acceptNames gives a definition the names that it asks for, as far as they are free, and sets the conditions that
// follow. It is a Strategy's Allocate. What has begun to end stays as it is.
func acceptNames(_ context.Context, obj, _ runtime.Object, taken func(claim string) bool) error {
	d := obj.(*apiextensionsv1.CustomResourceDefinition)
	if d.DeletionTimestamp != nil {
		return nil
	}
	accepted := naming{group: d.Spec.Group, taken: taken, want: d.Spec.Names, have: d.Status.AcceptedNames}
	condition := accepted.decide()
	d.Status.AcceptedNames = accepted.have
	apihelpers.SetCRDCondition(d, condition)
	apihelpers.SetCRDCondition(d, establishedCondition(d, condition.Status == apiextensionsv1.ConditionTrue))
	noteApproval(d)
	return nil
}

// naming decides on the names of one definition.
type naming struct {
	group      string
	taken      func(claim string) bool
	want, have apiextensionsv1.CustomResourceDefinitionNames
}

// decide moves into have what is free of want, and returns the condition NamesAccepted in Kubernetes' words. Of
// several conflicts it tells the last.
func (n *naming) decide() apiextensionsv1.CustomResourceDefinitionCondition {
	out := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, Reason: "NoConflicts", Message: "no conflicts found",
	}
	note := func(reason string, err error) {
		if err != nil {
			out.Status, out.Reason, out.Message = apiextensionsv1.ConditionFalse, reason, err.Error()
		}
	}
	note("PluralConflict", n.move(claimedResources, n.want.Plural, &n.have.Plural))
	note("SingularConflict", n.move(claimedResources, n.want.Singular, &n.have.Singular))
	note("ShortNamesConflict", n.moveShortNames())
	note("KindConflict", n.move(claimedKinds, n.want.Kind, &n.have.Kind))
	note("ListKindConflict", n.move(claimedKinds, n.want.ListKind, &n.have.ListKind))
	n.have.Categories = n.want.Categories
	return out
}

func (n *naming) move(claim, want string, have *string) error {
	if want != *have && n.taken(fmt.Sprintf(claim, n.group, want)) {
		return fmt.Errorf("%q is already in use", want)
	}
	*have = want
	return nil
}

// moveShortNames takes all or none.
func (n *naming) moveShortNames() error {
	var conflicts []error
	for _, name := range n.want.ShortNames {
		var have string
		if !slices.Contains(n.have.ShortNames, name) {
			conflicts = append(conflicts, n.move(claimedResources, name, &have))
		}
	}
	if err := utilerrors.NewAggregate(conflicts); err != nil {
		return err
	}
	n.have.ShortNames = n.want.ShortNames
	return nil
}

// establishedCondition: once established a definition stays so, whatever names it asks for later.
func establishedCondition(d *apiextensionsv1.CustomResourceDefinition, named bool) apiextensionsv1.CustomResourceDefinitionCondition {
	if old := apihelpers.FindCRDCondition(d, apiextensionsv1.Established); old != nil && old.Status == apiextensionsv1.ConditionTrue {
		return *old
	}
	out := apiextensionsv1.CustomResourceDefinitionCondition{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse}
	switch {
	case !named:
		out.Reason, out.Message = "NotAccepted", "not all names are accepted"
	case invalidCABundle(d):
		out.Reason, out.Message = "InvalidCABundle", "The conversion webhook CABundle is invalid"
	default:
		out.Status = apiextensionsv1.ConditionTrue
		out.Reason, out.Message = "InitialNamesAccepted", "the initial names have been accepted"
	}
	return out
}

func invalidCABundle(d *apiextensionsv1.CustomResourceDefinition) bool {
	c := d.Spec.Conversion
	return c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil &&
		len(hooks.ValidateCABundle(field.NewPath(""), c.Webhook.ClientConfig.CABundle)) > 0
}

// noteApproval says of groups that are Kubernetes' own whether their API was approved there.
func noteApproval(d *apiextensionsv1.CustomResourceDefinition) {
	if !apihelpers.IsProtectedCommunityGroup(d.Spec.Group) {
		return
	}
	out := apiextensionsv1.CustomResourceDefinitionCondition{Type: apiextensionsv1.KubernetesAPIApprovalPolicyConformant, Status: apiextensionsv1.ConditionUnknown}
	state, reason := apihelpers.GetAPIApprovalState(d.Annotations)
	out.Message = reason
	switch state {
	case apihelpers.APIApprovalInvalid:
		out.Status, out.Reason = apiextensionsv1.ConditionFalse, "InvalidAnnotation"
	case apihelpers.APIApprovalMissing:
		out.Status, out.Reason = apiextensionsv1.ConditionFalse, "MissingAnnotation"
	case apihelpers.APIApproved:
		out.Status, out.Reason = apiextensionsv1.ConditionTrue, "ApprovedAnnotation"
	case apihelpers.APIApprovalBypassed:
		out.Status, out.Reason = apiextensionsv1.ConditionFalse, "UnapprovedAnnotation"
	}
	apihelpers.SetCRDCondition(d, out)
}
