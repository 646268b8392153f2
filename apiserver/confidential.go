package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// confidential are the kinds of which no message quotes anything: an error goes further than to whoever has sent the object, into
// logs of clients and controllers. (kube-apiserver quotes them as it does all others. So whoever may patch a secret but
// not read it can read it there, by a patch that spoils it.)
var confidential = []schema.GroupKind{
	{Kind: "Secret"}, {Group: "authentication.k8s.io", Kind: "TokenReview"}, {Group: "authentication.k8s.io", Kind: "TokenRequest"},
}

// notShown stands for what a message would quote.
const notShown = "<not shown>"

// quoted is what a message shows of the text of an object of a kind.
func quoted(kind schema.GroupVersionKind, text string) string {
	if isConfidential(kind) {
		return notShown
	}
	return text
}

func isConfidential(kind schema.GroupVersionKind) bool {
	return slices.Contains(confidential, kind.GroupKind())
}
