// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kind/pkg/log"
)

// logger forwards kind's messages for users, without symbols.
type logger struct{ cluster *Cluster }

// Warn implements log.Logger.
func (l logger) Warn(message string) { l.V(0).Info(message) }

// Warnf implements log.Logger.
func (l logger) Warnf(format string, args ...any) { l.V(0).Infof(format, args...) }

// Error implements log.Logger.
func (l logger) Error(message string) { l.V(0).Info(message) }

// Errorf implements log.Logger.
func (l logger) Errorf(format string, args ...any) { l.V(0).Infof(format, args...) }

// V implements log.Logger.
func (l logger) V(level log.Level) log.InfoLogger { return infoLogger{l.cluster, level == 0} }

type infoLogger struct {
	cluster *Cluster
	enabled bool
}

// Info implements log.InfoLogger.
func (l infoLogger) Info(message string) {
	if text := plain(message); l.enabled && text != "" {
		l.cluster.say("%s", text)
	}
}

// Infof implements log.InfoLogger.
func (l infoLogger) Infof(format string, args ...any) { l.Info(fmt.Sprintf(format, args...)) }

// Enabled implements log.InfoLogger.
func (l infoLogger) Enabled() bool { return l.enabled }

func plain(message string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, message))
}
