package openapi

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"

	"kontiki/apiserver/discovery"
	"kontiki/apiserver/registry"
)

// cache keeps the documents that somebody has asked for, until a row changes that they describe. A second client
// that asks for a document while it is being built waits for the first.
type cache struct {
	table  *registry.Table
	encode func(json []byte) ([]byte, error) // JSON to protobuf
	base   func() base

	mu        sync.Mutex // guards the fields below, and is held while a document is built
	documents map[string]*document
}

// document is one answer. Its parts are gzipped: the core group's is 10 times as large in the clear.
type document struct {
	hash    string
	json    []byte
	version uint64               // of the table for which the document is known to be right
	rows    []*registry.Resource // that it describes

	encode func(json []byte) ([]byte, error)
	once   sync.Once // makes proto and err
	proto  []byte
	err    error
}

func newCache(table *registry.Table, encode func([]byte) ([]byte, error)) *cache {
	return &cache{table: table, encode: encode, base: sync.OnceValue(func() base { return newBase(table) }), documents: map[string]*document{}}
}

// get returns the document called name: "v2", or the path of a group version.
func (c *cache) get(name string) (*document, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.table.Version()
	doc := c.documents[name]
	if doc != nil && doc.version == now {
		return doc, nil
	}
	rows := c.rowsOf(name)
	if len(rows) == 0 { // of a group version that nobody serves any more nothing is kept
		delete(c.documents, name)
	}
	if doc != nil && slices.Equal(doc.rows, rows) {
		doc.version = now
		return doc, nil
	}
	body, err := c.build(name)
	if err != nil {
		return nil, fmt.Errorf("OpenAPI document %s: %w", name, err)
	}
	doc = &document{json: compress(body), hash: cmp.Or(digestOf(rows), hashOf(body)), version: now, rows: rows, encode: c.encode}
	c.documents[name] = doc
	return doc, nil
}

// rowsOf are the rows that a document describes.
func (c *cache) rowsOf(name string) []*registry.Resource {
	if name == "v2" {
		return c.table.Resources()
	}
	rows := slices.DeleteFunc(slices.Clone(c.table.Resources()), func(r *registry.Resource) bool { return pathOf(r.GroupVersion()) != name })
	return rows
}

// hash is that of a document, which need not be made for it if all rows have digests: an index of many definitions
// costs no more than their names.
func (c *cache) hash(name string) (string, error) {
	if digest := digestOf(c.rowsOf(name)); digest != "" {
		return digest, nil
	}
	doc, err := c.get(name)
	if err != nil {
		return "", err
	}
	return doc.hash, nil
}

// digestOf is made of the digests of rows, and empty if one has none.
func digestOf(rows []*registry.Resource) string {
	sum := sha256.New()
	_, _ = io.WriteString(sum, discovery.Version().GitVersion) // a hash takes everything
	for _, r := range rows {
		if r.Digest == "" {
			return ""
		}
		_, _ = io.WriteString(sum, r.Resource+r.Digest)
	}
	if len(rows) == 0 {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func (c *cache) build(name string) ([]byte, error) {
	if name == "v2" {
		return json.Marshal(documentV2(c.base(), c.table))
	}
	for _, gv := range groupVersions(c.table) {
		if pathOf(gv) == name {
			return json.Marshal(documentV3(c.base(), c.table, gv))
		}
	}
	return nil, fmt.Errorf("no such group version")
}

// protobuf is made when the first client asks for it: kubectl does for the groups that it applies to.
func (d *document) protobuf() ([]byte, error) {
	d.once.Do(func() {
		var plain []byte
		if plain, d.err = d.encode(decompress(d.json)); d.err == nil {
			d.proto = compress(plain)
		}
	})
	return d.proto, d.err
}

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func compress(plain []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(plain) // a bytes.Buffer takes everything
	_ = z.Close()
	return out.Bytes()
}

// decompress undoes compress.
func decompress(zipped []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		panic(fmt.Sprintf("a document that was compressed here does not open: %v", err))
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		panic(fmt.Sprintf("a document that was compressed here does not read: %v", err))
	}
	return plain
}
