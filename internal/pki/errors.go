package pki

import "errors"

var (
	// ErrDamaged says that a file exists and cannot be used. The error around it names the file.
	ErrDamaged = errors.New("damaged")
	// ErrHalf says that one of the two files of an authority is missing. Nothing is created in its
	// place: the other half may be what the whole cluster trusts.
	ErrHalf = errors.New("certificate and key must both be there")
	// ErrForeign says that a certificate was signed by another authority than the one beside it.
	ErrForeign = errors.New("signed by another authority")
	// ErrExpired says that an authority's time is over.
	ErrExpired = errors.New("expired")
	// ErrReadable says that others than the owner can read a private key.
	ErrReadable = errors.New("others can read this private key")
	// ErrRotation says that a step of a rotation cannot be taken now.
	ErrRotation = errors.New("rotation")
)
