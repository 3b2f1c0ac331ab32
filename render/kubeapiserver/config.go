// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	kubecontrolplanev1 "github.com/openshift/api/kubecontrolplane/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/observe"
)

//go:embed defaultconfig.yaml
var defaultConfigYAML []byte

// Observed values for the pod that are not fields of KubeAPIServerConfig.
const (
	proxyKey       = "targetconfigcontroller"
	gracePeriodKey = "gracefulTerminationDuration"
)

// requiredPaths are observed values without which the pod must not be written (U-REN-7).
var requiredPaths = [][]string{
	{"servingInfo", "namedCertificates"},
	{"apiServerArguments", "etcd-servers"},
	{"apiServerArguments", "service-account-issuer"},
	{"servicesSubnet"},
	{"admission", "pluginConfig", restrictedEndpoints},
}

// checkObserved returns an error that names every required value that is missing or empty (U-REN-7).
func checkObserved(observed map[string]any) error {
	var errs []error
	for _, path := range requiredPaths {
		value, found, err := unstructured.NestedFieldNoCopy(observed, path...)
		if err != nil {
			errs = append(errs, fmt.Errorf("observed config: %w", err))
		} else if !found || emptyValue(value) {
			errs = append(errs, fmt.Errorf("observed config: %s: %w: run config observation first", strings.Join(path, "."), observe.ErrNotObserved))
		}
	}
	return errors.Join(errs...)
}

func emptyValue(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}

// mergeConfig returns the default configuration merged with the observed one. Lists are replaced, except admission
// plugins, which are added.
func mergeConfig(observed map[string]any) (map[string]any, error) {
	var defaults map[string]any
	if err := yaml.Unmarshal(defaultConfigYAML, &defaults); err != nil {
		return nil, fmt.Errorf("read the default config: %w", err)
	}
	config := observe.Merge(defaults, observed)
	delete(config, proxyKey)
	delete(config, gracePeriodKey)
	path := []string{"apiServerArguments", "enable-admission-plugins"}
	plugins, _, err := unstructured.NestedStringSlice(defaults, path...)
	if err != nil {
		return nil, fmt.Errorf("read the default config: %w", err)
	}
	added, _, err := unstructured.NestedStringSlice(observed, path...)
	if err != nil {
		return nil, fmt.Errorf("read the observed config: %w", err)
	}
	plugins = append(plugins, added...)
	slices.Sort(plugins)
	if err := unstructured.SetNestedStringSlice(config, slices.Compact(plugins), path...); err != nil {
		return nil, fmt.Errorf("merge the admission plugins: %w", err)
	}
	return config, checkConfig(config)
}

// checkConfig rejects fields that KubeAPIServerConfig does not have: kube-apiserver would ignore them.
func checkConfig(config map[string]any) error {
	text, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("write the config: %w", err)
	}
	if err := yaml.UnmarshalStrict(text, &kubecontrolplanev1.KubeAPIServerConfig{}); err != nil {
		return fmt.Errorf("the merged config is not a KubeAPIServerConfig: %w", err)
	}
	return nil
}

// gracePeriod returns seconds. The default covers load balancers (70 s), requests (60 s) and a margin.
func gracePeriod(observed map[string]any) (int64, error) {
	text, found, err := unstructured.NestedString(observed, gracePeriodKey)
	if err != nil {
		return 0, fmt.Errorf("observed config: %w", err)
	}
	if !found {
		return 135, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("observed config: %s: %w", gracePeriodKey, err)
	}
	return seconds, nil
}
