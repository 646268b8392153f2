package registry

import (
	"fmt"
	"strconv"
	"strings"
)

// indexRange is one part of a list like "1,3-5".
type indexRange struct{ first, last int }

// parseIndexes reads a list of increasing indexes, all below completions. It keeps what it has read before a fault.
func parseIndexes(text string, completions int32) ([]indexRange, error) {
	if text == "" {
		return nil, nil
	}
	var out []indexRange
	for part := range strings.SplitSeq(text, ",") {
		r, err := parseIndexRange(part, completions)
		if err != nil {
			return out, err
		}
		if n := len(out); n > 0 && out[n-1].last >= r.first {
			return out, fmt.Errorf("non-increasing order, previous: %d, current: %d", out[n-1].last, r.first)
		}
		out = append(out, r)
	}
	return out, nil
}

func parseIndexRange(text string, completions int32) (indexRange, error) {
	ends := strings.Split(text, "-")
	if len(ends) > 2 {
		return indexRange{}, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'", text)
	}
	var n [2]int
	for i, end := range ends {
		var err error
		if n[i], err = strconv.Atoi(end); err != nil {
			return indexRange{}, fmt.Errorf("cannot convert string to integer for index: %q", end)
		}
		if n[i] >= int(completions) {
			return indexRange{}, fmt.Errorf("too large index: %q", end)
		}
	}
	if len(ends) == 1 {
		return indexRange{n[0], n[0]}, nil
	}
	if n[0] >= n[1] {
		return indexRange{}, fmt.Errorf("non-increasing order, previous: %d, current: %d", n[0], n[1])
	}
	return indexRange{n[0], n[1]}, nil
}

// countIndexes is the number of indexes in a list.
func countIndexes(text string, completions int32) (int32, error) {
	ranges, err := parseIndexes(text, completions)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, r := range ranges {
		total += r.last - r.first + 1
	}
	return int32(total), nil
}

// overlap finds the first index that is in both of two increasing lists.
func overlap(a, b []indexRange) (int, bool) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].last < b[0].first:
			a = a[1:]
		case b[0].last < a[0].first:
			b = b[1:]
		default:
			return max(a[0].first, b[0].first), true
		}
	}
	return 0, false
}
