package main

import (
	"slices"
	"time"

	"github.com/spf13/pflag"

	"kontiki/apiserver/audit"
)

// auditOptions is what is recorded of requests, and where: kube-apiserver's flags.
type auditOptions struct {
	policyFile  string
	file        audit.FileConfig
	webhookFile string
	webhook     audit.WebhookConfig
	config      audit.Config // from all of these
}

func (o *auditOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.policyFile, "audit-policy-file", "", "file with an audit.k8s.io/v1 Policy (default: metadata of all but reads of health, leases and events)")
	fs.StringVar(&o.file.Path, "audit-log-path", "", "file that audit events are written to, a line each; - for the standard output")
	fs.IntVar(&o.file.MaxSizeMB, "audit-log-maxsize", 100, "megabytes at which the audit log begins a new file; 0 for never")
	fs.IntVar(&o.file.MaxAgeDays, "audit-log-maxage", 366, "days that old files of the audit log are kept; 0 for ever")
	fs.IntVar(&o.file.MaxBackups, "audit-log-maxbackup", 100, "how many old files of the audit log are kept; 0 for all")
	fs.BoolVar(&o.file.Compress, "audit-log-compress", false, "compress old files of the audit log")
	addAuditModes(fs, "audit-log", &o.file.Mode, audit.ModeBlocking, &o.file.Batch, 0)
	fs.StringVar(&o.webhookFile, "audit-webhook-config-file", "", "kubeconfig of a server that audit events are sent to")
	fs.DurationVar(&o.webhook.InitialBackoff, "audit-webhook-initial-backoff", 10*time.Second, "how long to wait after a first failure to send audit events")
	addAuditModes(fs, "audit-webhook", &o.webhook.Mode, audit.ModeBatch, &o.webhook.Batch, 30*time.Second)
}

func addAuditModes(fs *pflag.FlagSet, sink string, mode *audit.Mode, usual audit.Mode, batch *audit.BatchConfig, wait time.Duration) {
	fs.StringVar((*string)(mode), sink+"-mode", string(usual), "whether requests wait for their events: batch, blocking, or blocking-strict (refuse them if the first cannot be stored)")
	fs.IntVar(&batch.BufferSize, sink+"-batch-buffer-size", 10_000, "events that may wait; more are dropped and counted (batch mode)")
	fs.IntVar(&batch.MaxSize, sink+"-batch-max-size", 400, "events that are written at a time (batch mode)")
	fs.DurationVar(&batch.MaxWait, sink+"-batch-max-wait", wait, "how long an event waits for others (batch mode)")
}

func (o *auditOptions) complete() error {
	for sink, given := range map[string]struct {
		mode  audit.Mode
		batch audit.BatchConfig
	}{"audit-log": {o.file.Mode, o.file.Batch}, "audit-webhook": {o.webhook.Mode, o.webhook.Batch}} {
		switch {
		case !slices.Contains(audit.Modes, given.mode):
			return wrong(sink+"-mode", "%q is none of %s, %s and %s", given.mode, audit.Modes[0], audit.Modes[1], audit.Modes[2])
		case given.batch.BufferSize <= 0:
			return wrong(sink+"-batch-buffer-size", "must be at least 1")
		case given.batch.MaxSize <= 0:
			return wrong(sink+"-batch-max-size", "must be at least 1")
		case given.batch.MaxWait < 0:
			return wrong(sink+"-batch-max-wait", "%s is less than 0", given.batch.MaxWait)
		}
	}
	if o.webhook.InitialBackoff <= 0 {
		return wrong("audit-webhook-initial-backoff", "must be more than 0")
	}
	for flag, n := range map[string]int{"audit-log-maxsize": o.file.MaxSizeMB, "audit-log-maxage": o.file.MaxAgeDays, "audit-log-maxbackup": o.file.MaxBackups} {
		if n < 0 {
			return wrong(flag, "%d is less than 0", n)
		}
	}
	return o.read()
}

// read reads the files that the flags name.
func (o *auditOptions) read() (err error) {
	if o.policyFile != "" {
		if o.file.Path == "" && o.webhookFile == "" {
			return wrong("audit-policy-file", "says what to record, and neither --audit-log-path nor --audit-webhook-config-file where")
		}
		if o.config.Policy, err = audit.LoadPolicy(o.policyFile); err != nil {
			return wrong("audit-policy-file", "%v", err)
		}
	}
	if o.file.Path != "" {
		o.config.File = &o.file
	}
	if o.webhookFile != "" {
		if o.webhook.REST, err = audit.LoadWebhook(o.webhookFile); err != nil {
			return wrong("audit-webhook-config-file", "%v", err)
		}
		o.config.Webhook = &o.webhook
	}
	return nil
}
