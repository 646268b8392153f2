package pki

import (
	"crypto/x509"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// Entry is what Inventory says about a file.
type Entry struct {
	// File is its path below the directory.
	File string `json:"file"`
	// Subject is the holder: the common name, and behind it the organizations in parentheses.
	Subject string `json:"subject,omitempty"`
	// Names are the DNS names and addresses for which it is good.
	Names []string `json:"names,omitempty"`
	// From and Expires bound its life.
	From    time.Time `json:"notBefore,omitzero"`
	Expires time.Time `json:"notAfter,omitzero"`
	// SignedBy is the issuer's common name.
	SignedBy string `json:"signedBy,omitempty"`
	// State is "good", or says in a few words what is the matter.
	State string `json:"state"`
	// Unusable: it has expired, is damaged, or cannot be used for another reason.
	Unusable bool `json:"unusable"`
}

// StateGood is the State of what needs no attention.
const StateGood = "good"

// Inventory lists the certificates and public keys in a directory, and changes nothing. What cannot be read is in it, too.
func Inventory(dir string, now time.Time) ([]Entry, error) {
	trusted := trustedBy(dir)
	var entries []Entry
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		file, err := filepath.Rel(dir, path)
		switch {
		case strings.HasSuffix(path, ".crt"):
			entries = append(entries, inspect(dir, file, trusted, now))
		case strings.HasSuffix(path, ".pem"):
			entries = append(entries, inspectCombined(dir, file, now))
		case file == oldAccountKeys:
			entries = append(entries, Entry{File: file, State: "verifies tokens, does not sign: remove it once they have expired"})
		case strings.HasSuffix(path, ".pub"):
			state := StateGood
			if strings.HasPrefix(file, nextAccountKey) {
				state = "verifies tokens, will sign after rotate finish"
			}
			entries = append(entries, Entry{File: file, Subject: "service-account tokens", State: state})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("pki: %w", err)
	}
	return entries, nil
}

// trustedBy are the authorities that can be read.
func trustedBy(dir string) []*authority {
	var out []*authority
	for _, row := range authorities {
		if a, err := readAuthority(filepath.Join(dir, row.file)); err == nil {
			out = append(out, a)
		}
	}
	return out
}

func inspect(dir, file string, trusted []*authority, now time.Time) Entry {
	path := filepath.Join(dir, strings.TrimSuffix(file, ".crt"))
	list, err := readCertificates(path + ".crt")
	if err != nil {
		return Entry{File: file, State: withoutPath(err, path), Unusable: true}
	}
	e := entryOf(file, list[0])
	switch {
	case strings.HasSuffix(file, oldAuthority("")):
		e.State = "old: trusted until rotate finish"
	case strings.HasSuffix(file, crossCertificate("")):
		e.State = "the new authority, signed by the old one"
	default:
		e.State, e.Unusable = state(path, list[0], trusted, now)
	}
	return e
}

// withoutPath shortens an error that begins with the file that it is about.
func withoutPath(err error, path string) string {
	return strings.NewReplacer(path+".crt: ", "", path+".key: ", "key: ", path, filepath.Base(path)).Replace(err.Error())
}

// entryOf describes a certificate.
func entryOf(file string, cert *x509.Certificate) Entry {
	e := Entry{File: file, Subject: cert.Subject.CommonName, Names: cert.DNSNames, From: cert.NotBefore, Expires: cert.NotAfter, SignedBy: cert.Issuer.CommonName}
	if groups := cert.Subject.Organization; len(groups) > 0 {
		e.Subject += " (" + strings.Join(groups, ", ") + ")"
	}
	for _, ip := range cert.IPAddresses {
		e.Names = append(e.Names, ip.String())
	}
	return e
}

func state(path string, cert *x509.Certificate, trusted []*authority, now time.Time) (state string, unusable bool) {
	if _, err := readPair(path); err != nil && (exists(path+".key") || !cert.IsCA) {
		return withoutPath(err, path), true
	}
	if state, unusable = inDate(cert, now); unusable || cert.IsCA {
		return state, unusable
	}
	for _, a := range trusted {
		switch {
		case a.signed(cert):
			return state, false
		case a.trusts(cert):
			return "signed by the old authority", false
		}
	}
	return "signed by no authority here", true
}

// inDate is what there is to say about a certificate's dates.
func inDate(cert *x509.Certificate, now time.Time) (state string, unusable bool) {
	switch {
	case now.After(cert.NotAfter):
		return "expired", true
	case now.Before(cert.NotBefore):
		return "not valid yet", true
	case !now.Before(RenewAt(cert)):
		return "due for renewal", false
	}
	return StateGood, false
}

// inspectCombined is inspect for a file with certificate and key: an agent's (nodeagent/certificates).
func inspectCombined(dir, file string, now time.Time) Entry {
	path := filepath.Join(dir, file)
	pair, err := ReadCombined(path)
	if err != nil {
		return Entry{File: file, State: strings.TrimPrefix(withoutPath(err, path), "pki: "), Unusable: true}
	}
	e := entryOf(file, pair.leaf)
	if e.State, e.Unusable = inDate(pair.leaf, now); e.Unusable {
		return e
	}
	trusted, err := readCertificates(filepath.Join(dir, authorities[0].file+".crt"))
	if err == nil && pair.VerifiedBy(trusted, now) != nil {
		e.State, e.Unusable = "signed by no authority here", true
	}
	return e
}
