package registry

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

const (
	none    = "<none>"
	unknown = "<unknown>"
	unset   = "<unset>"
)

// columns declares the columns that kubectl get prints and those that -o wide adds after them.
// A name may end in ":integer" or ":boolean"; every other column is a string.
func columns(always []string, wide ...string) []metav1.TableColumnDefinition {
	out := make([]metav1.TableColumnDefinition, 0, len(always)+len(wide))
	for _, name := range always {
		out = append(out, column(name, 0))
	}
	for _, name := range wide {
		out = append(out, column(name, 1))
	}
	return out
}

var describeColumn = map[string]string{
	"Name":       metav1.ObjectMeta{}.SwaggerDoc()["name"],
	"Age":        metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
	"Created At": metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
	// of what has a pod template
	"Containers": "Names of each container in the template.",
	"Images":     "Images referenced by each container in the template.",
}

func column(name string, priority int32) metav1.TableColumnDefinition {
	name, kind, typed := strings.Cut(name, ":")
	if !typed {
		kind = "string"
	}
	c := metav1.TableColumnDefinition{Name: name, Type: kind, Priority: priority, Description: describeColumn[name]}
	if name == "Name" || name == "Attacher" { // by which Kubernetes shows attachments
		c.Format = "name"
	}
	return c
}

// since is how long ago at was, in kubectl's short form: "5s", "3d4h".
func since(at metav1.Time, now time.Time) string {
	if at.IsZero() {
		return unknown
	}
	return duration.HumanDuration(now.Sub(at.Time))
}

func age(meta *metav1.ObjectMeta, now time.Time) string { return since(meta.CreationTimestamp, now) }

// orElse is text, or def if it is empty.
func orElse(text, def string) string {
	if text == "" {
		return def
	}
	return text
}

// quantityText takes a copy, because Quantity.String remembers its result in the quantity: rows are
// made of objects that many readers share.
func quantityText(q resource.Quantity) string { return q.String() }

// firstThree joins the first three of list and counts the rest.
func firstThree(list []string, empty string) string {
	switch {
	case len(list) == 0:
		return empty
	case len(list) > 3:
		return fmt.Sprintf("%s + %d more...", strings.Join(list[:3], ","), len(list)-3)
	}
	return strings.Join(list, ",")
}

// containerCells are the names and the images of a pod template's containers.
func containerCells(containers []corev1.Container) (names, images string) {
	var n, i []string
	for _, c := range containers {
		n, i = append(n, c.Name), append(i, c.Image)
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}

func selectorCell(s *metav1.LabelSelector) string {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return "<invalid>"
	}
	return selector.String()
}
