package watch

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// countingCodec counts how often it decodes.
type countingCodec struct {
	decoded int
	memos   Memos
}

func (c *countingCodec) Decode(string, []byte, int64) (runtime.Object, error) {
	c.decoded++
	return &corev1.ConfigMap{}, nil
}

func (c *countingCodec) Fields(runtime.Object) fields.Set { return nil }

func (c *countingCodec) Memos() *Memos { return &c.memos }

// Of large objects no more are remembered than fit, those that are in use first; small ones are left alone.
func TestLargeObjectsForget(t *testing.T) {
	c := &countingCodec{}
	const fit = keptLargeBytes / largeBytes
	var large, small []*Object
	for range 3 * fit {
		large = append(large, NewObject("/large", make([]byte, largeBytes), 1, 1, c))
		small = append(small, NewObject("/small", make([]byte, largeBytes-1), 1, 1, c))
	}
	for i := range large {
		large[i].Object()
		small[i].Object()
		large[0].Object() // is in use all the time
	}
	remembered := func(objects []*Object) (n int) {
		for _, o := range objects {
			if o.memo.object != nil {
				n++
			}
		}
		return n
	}
	require.Equal(t, len(small), remembered(small))
	require.LessOrEqual(t, remembered(large), fit+1)
	require.Greater(t, remembered(large), fit/2)
	require.NotNil(t, large[0].memo.object)
	require.Equal(t, len(small)+len(large), c.decoded)
	require.NotNil(t, large[1].Object(), "what is forgotten is computed again")
	require.Equal(t, len(small)+len(large)+1, c.decoded)
}
