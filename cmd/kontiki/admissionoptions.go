package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"kontiki/apiserver/admission"
)

// admissionOptions says which admission plugins run, and how: kube-apiserver's flags.
type admissionOptions struct {
	file   string
	config admission.Config
}

func (o *admissionOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.config.Enabled, "enable-admission-plugins", nil,
		"admission plugins to run beside those that do by default: AlwaysPullImages, DenyServiceExternalIPs, ExtendedResourceToleration, OwnerReferencesPermissionEnforcement")
	fs.StringSliceVar(&o.config.Disabled, "disable-admission-plugins", nil, "admission plugins that do not run")
	fs.StringVar(&o.file, "admission-control-config-file", "", "file with an apiserver.config.k8s.io/v1 AdmissionConfiguration: that of PodSecurity")
}

func (o *admissionOptions) complete() error {
	if o.file != "" {
		data, err := os.ReadFile(o.file)
		if err == nil {
			o.config.Plugins, err = admission.ParseConfiguration(data, filepath.Dir(o.file), os.ReadFile)
		}
		if err != nil {
			return wrong("admission-control-config-file", "%v", err)
		}
	}
	for _, part := range []struct {
		flag   string
		config admission.Config
	}{
		{"enable-admission-plugins", admission.Config{Enabled: o.config.Enabled}},
		{"disable-admission-plugins", o.config},
	} {
		part.config.Plugins = nil
		if err := part.config.Check(); err != nil {
			return wrong(part.flag, "%v", err)
		}
	}
	if err := o.config.Check(); err != nil {
		return wrong("admission-control-config-file", "%v", err)
	}
	return nil
}
