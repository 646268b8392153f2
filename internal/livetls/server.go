package livetls

import "crypto/tls"

// Server returns a copy of a server's configuration on which refine has worked. If the configuration follows renewed
// certificates by GetConfigForClient, so does the copy, and refine works on what that returns as well.
func Server(config *tls.Config, refine func(*tls.Config)) *tls.Config {
	refined := config.Clone()
	refine(refined)
	current := config.GetConfigForClient
	if current == nil {
		return refined
	}
	refined.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		fresh, err := current(hello)
		if fresh == nil || err != nil {
			return nil, err
		}
		fresh = fresh.Clone()
		refine(fresh)
		return fresh, nil
	}
	return refined
}
