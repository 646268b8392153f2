package nftables

import (
	"maps"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/knftables"
)

// maxDynamic bounds the elements that packets add to a set with a timeout; more are not remembered.
const maxDynamic = 65536

// Ruleset is an owner's part of a table.
type Ruleset struct {
	Chains   map[string][]string // the rules of each
	Sets     map[string]Set
	Elements map[Element]string // the verdict that each stands for in a map; "" in a set
}

// Set is the definition of a set. A name always has the same one.
type Set struct {
	Type string // in nftables' words, "ipv4_addr . inet_service"
	// Timeout makes it a set that rules add to, whose elements are forgotten after that long. At least a second; 0: none.
	Timeout time.Duration
}

// Element is a key of a map or set.
type Element struct {
	In  string // the map or set
	Key string // its parts, joined by " . "
}

// NewRuleset is an empty one.
func NewRuleset() *Ruleset {
	return &Ruleset{Chains: map[string][]string{}, Sets: map[string]Set{}, Elements: map[Element]string{}}
}

// Merge adds another part to r.
func (r *Ruleset) Merge(other *Ruleset) {
	maps.Copy(r.Chains, other.Chains)
	maps.Copy(r.Sets, other.Sets)
	maps.Copy(r.Elements, other.Elements)
}

// named is the set in knftables' terms.
func (s Set) named(name string) *knftables.Set {
	out := &knftables.Set{Name: name, Type: s.Type}
	if s.Timeout > 0 {
		out.Flags = []knftables.SetFlag{knftables.DynamicFlag, knftables.TimeoutFlag}
		out.Timeout, out.Size = ptr.To(max(s.Timeout, time.Second)), ptr.To(uint64(maxDynamic))
	}
	return out
}

// standing is the element in knftables' terms: of a set if it stands for nothing, of a map else.
func (e Element) standing(verdict string) *knftables.Element {
	out := &knftables.Element{Key: strings.Split(e.Key, " . ")}
	if verdict == "" {
		out.Set = e.In
		return out
	}
	out.Map, out.Value = e.In, []string{verdict}
	return out
}
