package kubeversion

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/version"
)

func TestPartsAreThoseOfTheWhole(t *testing.T) {
	v, err := version.ParseSemantic(Reported)
	require.NoError(t, err)
	require.Equal(t, Major, strconv.Itoa(int(v.Major())))
	require.Equal(t, Minor, strconv.Itoa(int(v.Minor())))
	require.Equal(t, MinCompatible, strconv.Itoa(int(v.Minor())-1))
	require.True(t, strings.HasPrefix(Kubernetes, "v"))
}
