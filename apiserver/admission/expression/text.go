package expression

import (
	"github.com/google/cel-go/cel"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
)

// Text is one expression, and what it may result in.
type Text struct {
	Name       string // of a variable; the key of an audit annotation
	Expression string
	types      []*cel.Type
}

var _ plugincel.NamedExpressionAccessor = Text{}

// GetName implements NamedExpressionAccessor.
func (t Text) GetName() string { return t.Name }

// GetExpression implements ExpressionAccessor.
func (t Text) GetExpression() string { return t.Expression }

// ReturnTypes implements ExpressionAccessor.
func (t Text) ReturnTypes() []*cel.Type { return t.types }

// Condition is true or false: a match condition, a validation.
func Condition(text string) Text { return Text{Expression: text, types: []*cel.Type{cel.BoolType}} }

// Message is the text of a refusal.
func Message(text string) Text { return Text{Expression: text, types: []*cel.Type{cel.StringType}} }

// AuditValue is the value of an audit annotation; null leaves it out.
func AuditValue(key, text string) Text {
	return Text{Name: key, Expression: text, types: []*cel.Type{cel.StringType, cel.NullType}}
}

// Variable is a part of other expressions, by its name: anything.
func Variable(name, text string) Text {
	return Text{Name: name, Expression: text, types: []*cel.Type{cel.AnyType, cel.DynType}}
}

// JSONPatch is a list of operations of RFC 6902.
func JSONPatch(text string) plugincel.ExpressionAccessor {
	return &patch.JSONPatchCondition{Expression: text}
}

// ApplyConfiguration is the fields to merge into an object.
func ApplyConfiguration(text string) plugincel.ExpressionAccessor {
	return &patch.ApplyConfigurationCondition{Expression: text}
}
