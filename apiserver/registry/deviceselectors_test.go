package registry

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestDeviceSelectors compiles expressions about devices, good ones and bad.
func TestDeviceSelectors(t *testing.T) {
	for expression, want := range map[string]string{
		`device.driver == "d"`: "",
		`device.attributes["d"].size > 3 && device.capacity["d"].memory.isGreaterThan(quantity("1Gi"))`: "",
		``:                          "compilation failed",
		`device.driver == `:         "Syntax error",
		`device.driver`:             "must evaluate to bool",
		`pod.name == "p"`:           "undeclared reference",
		strings.Repeat("x", 11<<10): "Too long",
	} {
		faults := deviceSelectors(field.NewPath("spec", "selectors"), []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}})
		if want == "" {
			require.Empty(t, faults, expression)
			continue
		}
		require.ErrorContains(t, faults.ToAggregate(), "spec.selectors[0].cel.expression", expression)
		require.ErrorContains(t, faults.ToAggregate(), want, expression)
	}
	faults := deviceSelectors(field.NewPath("spec", "selectors"), []resourcev1.DeviceSelector{{}})
	require.EqualError(t, faults.ToAggregate(), "spec.selectors[0].cel: Required value")
}
