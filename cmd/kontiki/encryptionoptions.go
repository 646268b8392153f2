package main

import (
	"github.com/spf13/pflag"

	"kontiki/apiserver/storage/encryption"
)

// encryptionOptions is how objects are encrypted in the store: kube-apiserver's flags.
type encryptionOptions struct {
	config encryption.Config
}

func (o *encryptionOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.config.Path, "encryption-provider-config", "", "file with an apiserver.config.k8s.io/v1 EncryptionConfiguration: what is encrypted in the store, and how")
	fs.BoolVar(&o.config.Reload, "encryption-provider-config-automatic-reload", false, "read --encryption-provider-config again when it changes")
}

func (o *encryptionOptions) complete() error {
	if o.config.Path == "" {
		if o.config.Reload {
			return wrong("encryption-provider-config-automatic-reload", "needs --encryption-provider-config")
		}
		return nil
	}
	if err := encryption.Check(o.config.Path); err != nil {
		return wrong("encryption-provider-config", "%v", err)
	}
	return nil
}
