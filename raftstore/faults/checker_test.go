package faults

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheck: the check notices what it is there for.
func TestCheck(t *testing.T) {
	events := []event{ // of revisions 2, 3, 4
		{"put/0.0", "0.0", 1},
		{counterPrefix + "0", "1 0.1", 1},
		{counterPrefix + "0", "2 1.1", 2},
	}
	put := write{"put/0.0", "0.0", 1, acknowledged, 2}
	first := write{counterPrefix + "0", "1 0.1", 2, acknowledged, 3}
	second := write{counterPrefix + "0", "2 1.1", 3, unknown, 0}
	never := write{counterPrefix + "0", "2 2.1", 3, refused, 0}
	for _, c := range []struct {
		name   string
		change func(h *history, events []event) []event
		wrong  string // empty if nothing is
	}{
		{"as it should be", func(_ *history, e []event) []event { return e }, ""},
		{"unknown and not applied", func(_ *history, e []event) []event { return e[:2] }, ""},
		{"lost", func(h *history, e []event) []event { h.writes[2].outcome = acknowledged; return e[:2] }, "is lost"},
		{"twice", func(_ *history, e []event) []event { return append(e, event{"put/0.0", "0.0", 2}) }, "was applied 2 times"},
		{"elsewhere", func(h *history, e []event) []event { h.writes[1].revision = 4; return e }, "acknowledged at revision 4 and is at 3"},
		{"refused", func(h *history, e []event) []event { h.writes[2].outcome = refused; return e }, "was refused and is at"},
		{"back in time", func(h *history, e []event) []event { h.writes[2].seen = 4; return e }, "had been seen before it began"},
		{"lost update", func(_ *history, e []event) []event { e[2].value = "1 1.1"; return e }, "is 1 at revision 4, expected 2"},
		{"version", func(_ *history, e []event) []event { e[2].version = 3; return e }, "has version 3 at revision 4, expected 2"},
		{"stale read", func(h *history, e []event) []event { h.reads[0].seen = 4; return e }, "was read at revision 3, and 4 had been seen"},
		{"wrong read", func(h *history, e []event) []event { h.reads[0].revision = 4; return e }, "was read as of 3, expected 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &history{writes: []write{put, first, second, never}, reads: []read{{counterPrefix + "0", 2, 3, 3}}}
			wrong := check(h, c.change(h, append([]event(nil), events...)))
			if c.wrong == "" {
				require.Empty(t, wrong)
				return
			}
			require.NotEmpty(t, wrong)
			require.Contains(t, wrong[0], c.wrong)
		})
	}
}
