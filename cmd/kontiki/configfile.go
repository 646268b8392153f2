package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// readConfigFile sets flags from the YAML file that --config names. Keys are flag names; a list
// stands for a flag that may be repeated. Flags given on the command line keep their values.
func readConfigFile(fs *pflag.FlagSet) error {
	path, err := fs.GetString("config")
	if err != nil || path == "" {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return wrong("config", "%v", err)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(data, &values); err != nil {
		return wrong("config", "%s: %s", path, strings.Join(strings.Fields(err.Error()), " ")) // the parser's takes lines
	}
	for key, value := range values {
		flag := fs.Lookup(key)
		if flag == nil || key == "config" || key == "help" {
			return wrong("config", "%s: there is no flag --%s", path, key)
		}
		if flag.Changed {
			continue
		}
		if err := fs.Set(key, flagText(value)); err != nil {
			return wrong("config", "%s: %v", path, err)
		}
	}
	return nil
}

func flagText(value any) string {
	switch v := value.(type) {
	case []any:
		texts := make([]string, len(v))
		for i := range v {
			texts[i] = flagText(v[i])
		}
		return strings.Join(texts, ",")
	case float64: // every YAML number is one; %v would write 1e+06
		return strings.TrimSuffix(fmt.Sprintf("%f", v), ".000000")
	case nil:
		return ""
	}
	return fmt.Sprint(value)
}
