// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
)

// operators are those of several reports: what stands in, by module, and what was given.
type operators struct {
	StandIns []string
	Given    []Operator
}

// operatorsOf adds up the exits of the same command on several clusters.
func operatorsOf(reports []Report) operators {
	var o operators
	for _, report := range reports {
		for _, operator := range report.Operators {
			if operator.StandIn {
				if !slices.Contains(o.StandIns, operator.Module) {
					o.StandIns = append(o.StandIns, operator.Module)
				}
				continue
			}
			same := func(other Operator) bool { return other.Module == operator.Module && other.Command == operator.Command }
			if i := slices.IndexFunc(o.Given, same); i >= 0 {
				o.Given[i].Exits += operator.Exits
			} else {
				o.Given = append(o.Given, operator)
			}
		}
	}
	return o
}

// StandInText is the sentence about stand-ins, or empty.
func (o operators) StandInText() string {
	if len(o.StandIns) == 0 {
		return ""
	}
	return "Stand-ins for operators of OpenShift: " + strings.Join(o.StandIns, ", ")
}

// ExitText is the remark about a command that ended by itself, or empty.
func (o Operator) ExitText() string {
	if o.Exits == 0 {
		return ""
	}
	return fmt.Sprintf("ended by itself and was restarted, times: %d", o.Exits)
}

// text is the sentence about a command.
func (o Operator) text() string {
	text := "Given operator of " + o.Module + ": " + o.Command
	if exits := o.ExitText(); exits != "" {
		text += " (" + exits + ")"
	}
	return text
}

// OperatorLines returns a line for the stand-ins of the reports and one for each command.
func OperatorLines(reports ...Report) []string {
	o := operatorsOf(reports)
	var lines []string
	if text := o.StandInText(); text != "" {
		lines = append(lines, text)
	}
	for _, operator := range o.Given {
		lines = append(lines, operator.text())
	}
	return lines
}
