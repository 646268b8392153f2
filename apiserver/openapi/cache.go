package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"sync"

	"kontiki/apiserver/discovery"
	"kontiki/apiserver/registry"
)

// cache keeps the documents that somebody has asked for, until a row changes that they describe, and the fragments
// that they are made of, until their own row does. A second client that asks for a document while it is being built
// waits for the first.
type cache struct {
	dialect
	table *registry.Table
	base  *Base

	mu        sync.Mutex // guards the fields below, and is held while a document is built
	documents map[string]*document
	fragments map[fragmentKey]*fragment
	kept      *keptFrame // of everything
}

// keptFrame is of the rows with Go types, which neither come nor go.
type keptFrame struct {
	encodedFrame
	typed []*registry.Resource
}

// document is one answer.
type document struct {
	hash    string
	json    parts
	version uint64               // of the table for which the document is known to be right
	typed   []*registry.Resource // that it describes, and
	customs string               // the digest of the others

	once  sync.Once // makes what follows
	proto parts
	err   error
	make  func() (parts, error)
}

func newCache(d dialect, table *registry.Table, base *Base) *cache {
	return &cache{dialect: d, table: table, base: base, documents: map[string]*document{}, fragments: map[fragmentKey]*fragment{}}
}

// everything is the name of the document that describes all rows. Other documents have the path of their group version.
const everything = "v2"

// get returns the document called name.
func (c *cache) get(name string) (*document, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.table.Version()
	doc := c.documents[name]
	if doc != nil && doc.version == now {
		return doc, nil
	}
	c.forget()
	typed, customs := c.rowsOf(name)
	digest := digestOf(customs)
	if doc != nil && slices.Equal(doc.typed, typed) && doc.customs == digest {
		doc.version = now
		return doc, nil
	}
	if len(typed)+len(customs) == 0 {
		return nil, fmt.Errorf("OpenAPI document %s: no such group version", name)
	}
	doc, err := c.build(name, typed, customs)
	if err != nil {
		return nil, fmt.Errorf("OpenAPI document %s: %w", name, err)
	}
	doc.version, doc.typed, doc.customs = now, typed, digest
	c.documents[name] = doc
	return doc, nil
}

// forget drops what is of rows that have gone. c.mu is held.
func (c *cache) forget() {
	maps.DeleteFunc(c.fragments, func(key fragmentKey, _ *fragment) bool {
		row := c.table.Lookup(key.GroupVersionResource)
		return row == nil || row.Digest != key.digest
	})
	served := map[string]bool{everything: true}
	for _, gv := range groupVersions(c.table.Resources()) {
		served[pathOf(gv)] = true
	}
	maps.DeleteFunc(c.documents, func(name string, _ *document) bool { return !served[name] })
}

// rowsOf are the rows that a document describes.
func (c *cache) rowsOf(name string) (typed, customs []*registry.Resource) {
	for _, r := range c.table.Resources() {
		switch {
		case name != everything && pathOf(r.GroupVersion()) != name:
		case isCustom(r):
			customs = append(customs, r)
		default:
			typed = append(typed, r)
		}
	}
	return typed, customs
}

// hash is that of a document, which need not be made for it if all rows have digests: an index of many definitions
// costs no more than their names.
func (c *cache) hash(name string) (string, error) {
	if typed, customs := c.rowsOf(name); len(typed) == 0 {
		return digestOf(customs), nil
	}
	doc, err := c.get(name)
	if err != nil {
		return "", err
	}
	return doc.hash, nil
}

// digestOf is made of what rows say, and empty if there are none.
func digestOf(rows []*registry.Resource) string {
	if len(rows) == 0 {
		return ""
	}
	sum := sha256.New()
	_, _ = io.WriteString(sum, discovery.Version().GitVersion) // a hash takes everything
	for _, r := range rows {
		_, _ = io.WriteString(sum, r.Resource+r.Digest)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// build makes a document. c.mu is held.
func (c *cache) build(name string, typed, customs []*registry.Resource) (*document, error) {
	fragments, err := c.fragmentsOf(customs)
	if err != nil {
		return nil, err
	}
	refers := map[reflect.Type]bool{}
	for _, f := range fragments {
		for _, t := range f.refers {
			refers[t] = true
		}
	}
	open, err := c.frameOf(name, typed, customs, refers)
	if err != nil {
		return nil, err
	}
	if name == everything {
		roots, err := c.rootsOf(typed, customs)
		if err != nil {
			return nil, err
		}
		if roots.paths.size > 0 {
			fragments = append(fragments, roots)
		}
	}
	doc := &document{json: open.around(fragments), hash: digestOf(customs)}
	if len(typed) > 0 {
		doc.hash = hashOf([]byte(open.hash + doc.hash))
	}
	doc.make = func() (parts, error) { return c.protobufOf(open, fragments) }
	return doc, nil
}

// fragmentsOf are those of rows, made now where there are none. c.mu is held.
func (c *cache) fragmentsOf(rows []*registry.Resource) ([]*fragment, error) {
	fragments := make([]*fragment, len(rows))
	var missing []int
	for i, r := range rows {
		if fragments[i] = c.fragments[keyOf(r)]; fragments[i] == nil {
			missing = append(missing, i)
		}
	}
	err := abreast(len(missing), func(n int) error {
		f, err := c.newFragment(rows[missing[n]])
		if err == nil {
			fragments[missing[n]] = f
		}
		return err
	})
	for _, i := range missing {
		if fragments[i] != nil {
			c.fragments[keyOf(rows[i])] = fragments[i]
		}
	}
	return fragments, err
}

// frameOf is a document without its custom resources. That of all rows is large, and kept; the others are not.
func (c *cache) frameOf(name string, typed, customs []*registry.Resource, refers map[reflect.Type]bool) (encodedFrame, error) {
	if name == everything && c.kept != nil && slices.Equal(c.kept.typed, typed) {
		return c.kept.encodedFrame, nil
	}
	gvs := groupVersions(typed)
	if len(gvs) == 0 {
		gvs = groupVersions(customs)
	}
	paths, definitions := c.base.describe(c.dialect, typed, gvs, refers)
	open, err := c.frame(paths, definitions)
	if err != nil {
		return encodedFrame{}, err
	}
	out := open.encode()
	if name == everything {
		c.kept = &keptFrame{out, typed}
	}
	return out, nil
}

// rootsOf describes the roots of the group versions that custom resources alone have.
func (c *cache) rootsOf(typed, customs []*registry.Resource) (*fragment, error) {
	known := groupVersions(typed)
	s, paths := &schemas{dialect: c.dialect, refers: map[reflect.Type]bool{}}, map[string]any{}
	for _, gv := range groupVersions(customs) {
		if !slices.Contains(known, gv) {
			paths[rootOf(gv)+"/"] = s.path(discoveryOf(gv))
		}
	}
	members, err := membersPart(paths)
	return &fragment{paths: members, definitions: newPart(nil)}, err
}

// protobufOf is a document in protobuf: kubectl asks for the groups that it applies to.
func (c *cache) protobufOf(open encodedFrame, fragments []*fragment) (parts, error) {
	first, err := c.protobuf(open.around(nil).bytes())
	if err != nil {
		return nil, err
	}
	out := make(parts, 1+len(fragments))
	out[0] = first
	err = abreast(len(fragments), func(i int) (err error) {
		out[1+i], err = fragments[i].protobuf(c.dialect)
		return err
	})
	return out, err
}

// protobuf is made when the first client asks for it.
func (d *document) protobuf() (parts, error) {
	d.once.Do(func() { d.proto, d.err = d.make(); d.make = nil })
	return d.proto, d.err
}

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
