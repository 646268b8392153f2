package flowcontrol

import "fmt"

// RejectedError says that a request got no seat. The API answers 429 Too Many Requests with Retry-After.
type RejectedError struct {
	Reason      string // ReasonQueueFull, ReasonTimeout or ReasonConcurrency
	Level, Flow string // the priority level and the flow schema
}

// Why a request is rejected: the label reason of the metric.
const (
	ReasonQueueFull   = "queue-full"        // the queue of its flow has queueLengthLimit requests
	ReasonTimeout     = "time-out"          // it has waited for Config.MaxWait
	ReasonConcurrency = "concurrency-limit" // all seats are taken, and the level has no queues
)

// Error names what the request ran into.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("no seat in priority level %s for flow schema %s: %s", e.Level, e.Flow, e.Reason)
}
