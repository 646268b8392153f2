package bootstraptoken

import "errors"

var (
	// ErrFormat is a text that is no token.
	ErrFormat = errors.New("a token is six characters, a dot and sixteen characters, each of a-z and 0-9")
	// ErrNoHash is a token that does not say which cluster it is for.
	ErrNoHash = errors.New("the token does not name the cluster that it is for: use all of what `kontiki token create` printed (K10…::…)")
	// ErrSecret is a Secret that holds no token.
	ErrSecret = errors.New("not the Secret of a bootstrap token")
)
