package pki

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Renew issues the certificates with these names again, all of them without any: with new keys, for whom and what they
// were for, and good for life (0: one year) from now. The names are those of Inventory without ".crt". An authority is
// signed again, with the key that it has, if it is named or has expired: whoever trusts it needs its new certificate
// then. It works on the directory of a stopped server, and a running one takes the result into use with its next look.
func Renew(dir string, names []string, now time.Time, life time.Duration) (renewed []string, err error) {
	unlock, err := lock(dir)
	if err != nil {
		return nil, fmt.Errorf("pki: %w", err)
	}
	defer unlock()
	if life == 0 {
		life = certificateLife
	}
	return renew(dir, names, now, life)
}

func renew(dir string, names []string, now time.Time, life time.Duration) (renewed []string, err error) {
	wanted := func(name string) bool { return len(names) == 0 || slices.Contains(names, name) }
	var signers []*authority
	for _, row := range authorities {
		path := filepath.Join(dir, row.file)
		a, err := readAuthority(path)
		if err != nil {
			return renewed, fmt.Errorf("pki: %w", err)
		}
		if slices.Contains(names, row.file) || now.After(a.cert.NotAfter) && wanted(row.file) {
			if err := a.renew(now); err != nil {
				return renewed, fmt.Errorf("pki: %w", err)
			}
			renewed = append(renewed, row.file)
		}
		if now.After(a.cert.NotAfter) {
			return renewed, fmt.Errorf("pki: %s.crt: %w on %s: renew %s first", path, ErrExpired, a.cert.NotAfter.Format(time.DateOnly), row.file)
		}
		signers = append(signers, a)
	}
	err = eachPair(dir, func(name string, pair *KeyPair) error {
		if !wanted(name) {
			return nil
		}
		for _, a := range signers {
			if a.trusts(pair.leaf) {
				renewed = append(renewed, name)
				return a.issue(filepath.Join(dir, name), again(pair.leaf), now, life)
			}
		}
		return fmt.Errorf("%s.crt: %w than those here", filepath.Join(dir, name), ErrForeign)
	})
	if err != nil {
		return renewed, fmt.Errorf("pki: %w", err)
	}
	for _, name := range names {
		if !slices.Contains(renewed, name) {
			return renewed, fmt.Errorf("pki: there is no certificate %s in %s", name, dir)
		}
	}
	return renewed, nil
}

// again is the certificate that says the same.
func again(leaf *x509.Certificate) *x509.Certificate {
	return &x509.Certificate{
		Subject:               leaf.Subject,
		KeyUsage:              leaf.KeyUsage,
		ExtKeyUsage:           leaf.ExtKeyUsage,
		BasicConstraintsValid: true,
		DNSNames:              leaf.DNSNames,
		IPAddresses:           leaf.IPAddresses,
	}
}

// renew signs an authority again with the key that it has: what it has issued stays good, and so does its hash in join
// tokens.
func (a *authority) renew(now time.Time) error {
	if !bytes.Equal(a.cert.RawIssuer, a.cert.RawSubject) {
		return fmt.Errorf("%s.crt was signed by %s: have it signed again there", a.path, a.cert.Issuer)
	}
	template := authorityTemplate("", now)
	template.RawSubject, template.MaxPathLen, template.MaxPathLenZero = a.cert.RawSubject, a.cert.MaxPathLen, a.cert.MaxPathLenZero
	template.SubjectKeyId = a.cert.SubjectKeyId
	der, err := sign(template, template, a.key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("sign %s.crt: %w", a.path, err)
	}
	if err := writeFile(a.path+".crt", encodeCertificate(der)); err != nil {
		return err
	}
	fresh, err := readAuthority(a.path)
	if err == nil {
		*a = *fresh
	}
	return err
}

// eachPair calls f for every certificate with a key beside it that is not an authority's, by its path below dir without
// its ending.
func eachPair(dir string, f func(name string, pair *KeyPair) error) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		base, isCertificate := strings.CutSuffix(path, ".crt")
		if err != nil || entry.IsDir() || !isCertificate || !exists(base+".key") {
			return err
		}
		name, err := filepath.Rel(dir, base)
		if err != nil || isAuthority(name) {
			return err
		}
		pair, err := readPair(base)
		if err != nil {
			return errors.Join(err, errors.New("remove it to have it issued again when the server starts"))
		}
		return f(name, pair)
	})
}

func isAuthority(name string) bool {
	for _, a := range authorities {
		if name == a.file || name == nextAuthority(a.file) {
			return true
		}
	}
	return false
}
