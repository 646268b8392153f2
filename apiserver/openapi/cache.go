package openapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"kontiki/apiserver/registry"
)

// cache keeps the documents that somebody has asked for, until the table changes. A second client
// that asks for a document while it is being built waits for the first.
type cache struct {
	table  *registry.Table
	encode func(json []byte) ([]byte, error) // JSON to protobuf

	mu        sync.Mutex // guards the fields below, and is held while a document is built
	version   uint64     // of the table that documents were made from
	documents map[string]*document
}

// document is one answer. Its parts are gzipped: the core group's is 10 times as large in the clear.
type document struct {
	hash string
	json []byte

	encode func(json []byte) ([]byte, error)
	once   sync.Once // makes proto and err
	proto  []byte
	err    error
}

func newCache(table *registry.Table, encode func([]byte) ([]byte, error)) *cache {
	return &cache{table: table, encode: encode, documents: map[string]*document{}}
}

// get returns the document called name: "v2", or the path of a group version.
func (c *cache) get(name string) (*document, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.table.Version(); now != c.version {
		c.version = now
		clear(c.documents)
	}
	if doc := c.documents[name]; doc != nil {
		return doc, nil
	}
	body, err := c.build(name)
	if err != nil {
		return nil, fmt.Errorf("OpenAPI document %s: %w", name, err)
	}
	doc := &document{json: compress(body), hash: hashOf(body), encode: c.encode}
	c.documents[name] = doc
	return doc, nil
}

func (c *cache) build(name string) ([]byte, error) {
	if name == "v2" {
		return json.Marshal(documentV2(c.table))
	}
	for _, gv := range groupVersions(c.table) {
		if pathOf(gv) == name {
			return json.Marshal(documentV3(c.table, gv))
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
