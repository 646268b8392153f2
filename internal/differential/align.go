package differential

import "fmt"

// align pairs the items of two lists without changing their order: those that are alike with each other (a longest
// common subsequence), what is left between two such pairs one by one, the rest with nothing. So an event or a cause
// that one side has in addition is one difference, and does not make all that follow differ.
func align(left, right []any) [][2]any {
	var out [][2]any
	gap := func(a, b []any) {
		for i := range max(len(a), len(b)) {
			pair := [2]any{absent, absent}
			if i < len(a) {
				pair[0] = a[i]
			}
			if i < len(b) {
				pair[1] = b[i]
			}
			out = append(out, pair)
		}
	}
	i, j := 0, 0
	for _, match := range common(likenesses(left), likenesses(right)) {
		gap(left[i:match[0]], right[j:match[1]])
		out = append(out, [2]any{left[match[0]], right[match[1]]})
		i, j = match[0]+1, match[1]+1
	}
	gap(left[i:], right[j:])
	return out
}

func likenesses(list []any) []string {
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = likeness(item)
	}
	return out
}

// likeness is equal for items that are one and the same thing: an event by its type and its object's name and labels
// (each write of the corpus changes the labels), anything else by all it has.
func likeness(item any) string {
	event, _ := item.(map[string]any)
	object, _ := event["object"].(map[string]any)
	meta, _ := object["metadata"].(map[string]any)
	if meta == nil {
		return text(item)
	}
	return fmt.Sprint(event["type"], " ", meta["name"], " ", text(meta["labels"]))
}

// common is a longest common subsequence, as pairs of indices.
func common(left, right []string) [][2]int {
	lengths := make([][]int, len(left)+1) // of the longest one of left[i:] and right[j:]
	for i := range lengths {
		lengths[i] = make([]int, len(right)+1)
	}
	for i := len(left) - 1; i >= 0; i-- {
		for j := len(right) - 1; j >= 0; j-- {
			if left[i] == right[j] {
				lengths[i][j] = 1 + lengths[i+1][j+1]
			} else {
				lengths[i][j] = max(lengths[i+1][j], lengths[i][j+1])
			}
		}
	}
	var out [][2]int
	for i, j := 0, 0; i < len(left) && j < len(right); {
		switch {
		case left[i] == right[j]:
			out = append(out, [2]int{i, j})
			i, j = i+1, j+1
		case lengths[i+1][j] >= lengths[i][j+1]:
			i++
		default:
			j++
		}
	}
	return out
}
