package pki

import (
	"context"
	"crypto/x509"
	"log/slog"
	"time"
)

// A certificate is renewed when a third of its life is left, or up to a tenth of its life before that: each has its own
// moment, so that the machines of a cluster, which were all set up on one day, do not all renew at once.

// RenewAt is when a certificate is to be issued again. Its moment follows from its serial number, which is random.
func RenewAt(cert *x509.Certificate) time.Time {
	life := cert.NotAfter.Sub(cert.NotBefore)
	jitter := life / 10 * time.Duration(cert.SerialNumber.Uint64()%1000) / 1000
	return cert.NotAfter.Add(-life/3 - jitter)
}

// due says whether a certificate is to be issued again. Near the end of its authority there is nothing to be gained: what
// is issued would not last longer.
func (a *authority) due(cert *x509.Certificate, now time.Time, life time.Duration) bool {
	if now.Before(RenewAt(cert)) {
		return false
	}
	end := now.Add(life)
	if end.After(a.cert.NotAfter) {
		end = a.cert.NotAfter
	}
	return end.Sub(cert.NotAfter) > life/20 || now.After(cert.NotAfter)
}

// lookEvery is how often Keep looks at the directory: often enough that a certificate of ten minutes, the shortest that
// Kubernetes knows, is renewed in time, and that a jump of the clock is noticed.
const lookEvery = 20 * time.Second

// Keep renews certificates before they expire and takes files into use that somebody else has changed, until ctx ends.
// changed, which may be nil, is called after each change.
func (p *PKI) Keep(ctx context.Context, log *slog.Logger, changed func()) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-p.wake:
		}
		fresh, err := p.Refresh()
		switch {
		case err != nil && !failing: // once, not every time
			log.Error("certificates cannot be kept up to date, those in use stay", "err", err)
		case err == nil && failing:
			log.Info("certificates can be kept up to date again")
		}
		failing = err != nil
		if fresh {
			log.Info("certificates have changed", "dir", p.dir)
			if changed != nil {
				changed()
			}
		}
	}
}

// Look has Keep look at the files now.
func (p *PKI) Look() {
	select {
	case p.wake <- struct{}{}:
	default: // it is about to
	}
}
