package audit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"kontiki/apiserver/audit"
)

func TestAnnotate(t *testing.T) {
	audit.Annotate(t.Context(), "a", "of a request that is not audited") // no more than nothing
	require.Nil(t, audit.RecordOf(t.Context()))

	record := &audit.Record{}
	ctx, cancel := context.WithCancel(audit.WithRecord(t.Context(), record))
	cancel()
	audit.Annotate(ctx, "a", "first")
	audit.Annotate(ctx, "a", "second")
	audit.Annotate(ctx, "b", "other")
	require.Equal(t, map[string]string{"a": "first", "b": "other"}, record.Annotations())
}
