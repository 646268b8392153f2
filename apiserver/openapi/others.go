package openapi

import (
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/kube-openapi/pkg/aggregator"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Others has the documents of other servers, whose group versions this one serves too (package aggregation).
type Others interface {
	// V3 returns where their documents of version 3 are, by path ("apis/G/V"); empty for one that there is not.
	V3() map[string]string
	// V2 returns their documents of version 2, which the caller may change. V2Version is another one when V2 is, and empty if
	// there are none.
	V2() []*spec.Swagger
	V2Version() string
}

// noOthers is a server by itself.
type noOthers struct{}

// V3 implements Others.
func (noOthers) V3() map[string]string { return nil }

// V2 implements Others.
func (noOthers) V2() []*spec.Swagger { return nil }

// V2Version implements Others.
func (noOthers) V2Version() string { return "" }

// merger makes one document of everything that this server has and that of others. It is parsed for that, so that a server which
// others are behind takes longer to make it anew; it is made when somebody asks, and something has changed.
type merger struct {
	docs   *cache
	others Others

	mu      sync.Mutex // guards what follows, and is held while a document is built
	own     *document
	version string
	merged  *document
}

func (m *merger) get() (*document, error) {
	own, err := m.docs.get(everything)
	if err != nil {
		return nil, err
	}
	version := m.others.V2Version()
	if version == "" {
		return own, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.merged != nil && m.own == own && m.version == version {
		return m.merged, nil
	}
	merged, err := m.merge(own)
	if err != nil {
		return nil, err
	}
	m.own, m.version, m.merged = own, version, merged
	return merged, nil
}

func (m *merger) merge(own *document) (*document, error) {
	whole := &spec.Swagger{}
	if err := json.Unmarshal(own.json.bytes(), whole); err != nil {
		return nil, err
	}
	for _, other := range m.others.V2() {
		_ = mergeOne(whole, other) // what cannot be merged is missing, and nothing else
	}
	body, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	doc := &document{json: parts{newPart(body)}, hash: hashOf(body)}
	doc.make = func() (parts, error) {
		p, err := m.docs.protobuf(body)
		return parts{p}, err
	}
	return doc, nil
}

// mergeOne puts another server's document into one. Definitions of one name that differ get another name, and of a path that
// both have, the first one's is kept. The document comes from a stranger: a panic over it is its fault, and it is left out.
func mergeOne(into, other *spec.Swagger) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	if other.Paths == nil {
		return nil
	}
	return aggregator.MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters(into, other)
}
