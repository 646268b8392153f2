package podstate

import "time"

// Restart back-off of Kubernetes: the first restart is immediate, then 10 s, 20 s, 40 s … 300 s between an exit
// and the next start. An instance that lived for 10 minutes starts the series anew.
const (
	firstBackOff = 10 * time.Second
	maxBackOff   = 300 * time.Second
	resetAfter   = 10 * time.Minute
)

// nextBackOff is how long after the end of an exited instance the next one may start. Each instance carries the
// delay it had itself, so the series goes on over restarts of the agent (ND-08).
func nextBackOff(in *Instance) time.Duration {
	lived := in.Ended().Sub(time.Unix(0, max(in.StartedAt, in.CreatedAt)))
	switch delay := in.backOff(); {
	case lived >= resetAfter || in.GetMetadata().GetAttempt() == 0:
		return 0
	case delay == 0:
		return firstBackOff
	default:
		return min(2*delay, maxBackOff)
	}
}
